import json

from world import rows, score


def check():
    labels = [row["id"] for row in rows("gmail", "SELECT id FROM labels WHERE name = 'Newsletters'")]
    assert len(labels) == 1, "there is no label Newsletters"
    before = {m["id"]: m for m in rows("gmail", "SELECT * FROM messages", seed=True)}
    after = {m["id"]: m for m in rows("gmail", "SELECT * FROM messages")}
    assert set(before) == set(after), "messages were added or removed"
    for id, message in after.items():
        now, was = set(json.loads(message["labels"])), set(json.loads(before[id]["labels"]))
        if b"list-unsubscribe:" in bytes(message["raw"]).lower():
            assert labels[0] in now and "INBOX" not in now and "TRASH" not in now, message["subject"]
        else:
            assert now == was, message["subject"]


score(check)
