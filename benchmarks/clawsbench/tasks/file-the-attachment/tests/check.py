import json

from world import rows, score


def check():
    known = {row["id"] for row in rows("gdrive", "SELECT id FROM drive_files", seed=True)}
    new = [row for row in rows("gdrive", "SELECT * FROM drive_files WHERE trashed = 0") if row["id"] not in known]
    assert [row["name"] for row in new] == ["contract-halden-2026.txt"], [row["name"] for row in new]
    (folder,) = rows("gdrive", "SELECT id FROM drive_files WHERE name = 'Contracts'")
    assert new[0]["parent"] == folder["id"], "it is in another folder"
    (content,) = rows(
        "gdrive", "SELECT content FROM drive_revisions WHERE file = ? ORDER BY number DESC LIMIT 1", new[0]["id"]
    )
    assert bytes(content["content"]) == b"CONTRACT Halden Hosting 2026\nSigned: N. Rahman, D. Whitfield\n", content
    for message in rows("gmail", "SELECT subject, labels FROM messages"):
        labels = set(json.loads(message["labels"]))
        marked = "STARRED" in labels and "UNREAD" not in labels
        assert marked == (message["subject"] == "Signed contract"), message


score(check)
