import json

from world import rows, score


def check():
    known = {row["id"] for row in rows("gcal", "SELECT id FROM events", seed=True)}
    new = [row for row in rows("gcal", "SELECT * FROM events WHERE status != 'cancelled'") if row["id"] not in known]
    assert len(new) == 1 and new[0]["summary"] == "Spring launch", new
    data = json.loads(new[0]["data"])
    assert (data["start"].get("date"), data["end"].get("date")) == ("2026-04-21", "2026-04-22"), data
    (channel,) = rows("slack", "SELECT id FROM channels WHERE name = 'announcements'")
    old = {row["ts"] for row in rows("slack", "SELECT ts FROM messages", seed=True)}
    posted = [row for row in rows("slack", "SELECT * FROM messages") if row["ts"] not in old]
    assert len(posted) == 1 and posted[0]["channel"] == channel["id"], posted
    assert "2026-04-21" in posted[0]["text"] and "launch" in posted[0]["text"].lower(), posted[0]["text"]
    document = "SELECT text, revision FROM documents WHERE id = 'launch-plan'"
    assert rows("gdoc", document) == rows("gdoc", document, seed=True), "the document was changed"


score(check)
