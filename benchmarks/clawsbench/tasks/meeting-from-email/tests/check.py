import json

from world import rows, score


def check():
    before = rows("gcal", "SELECT id, status FROM events", seed=True)
    after = rows("gcal", "SELECT * FROM events WHERE calendar_id = 'alex@tidewater.example'")
    known = {row["id"]: row["status"] for row in before}
    assert all({row["id"]: row["status"] for row in after}.get(id) == status for id, status in known.items()), (
        "others changed"
    )
    new = [row for row in after if row["id"] not in known and row["status"] != "cancelled"]
    assert len(new) == 1, f"one new event was to be made, not {len(new)}"
    (event,) = new
    assert event["summary"] == "Pier renovation kickoff", event["summary"]
    assert (event["start_ms"], event["end_ms"]) == (1773239400000, 1773242100000), (event["start_ms"], event["end_ms"])
    data = json.loads(event["data"])
    assert "lighthouse room" in data.get("location", "").lower(), data.get("location")
    assert any(a["email"].lower() == "alice@northpier.example" for a in data.get("attendees", [])), "Alice is no guest"


score(check)
