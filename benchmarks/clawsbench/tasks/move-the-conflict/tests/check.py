import json

from world import rows, score


def check():
    before = {row["id"]: row for row in rows("gcal", "SELECT * FROM events", seed=True)}
    after = {row["id"]: row for row in rows("gcal", "SELECT * FROM events")}
    assert set(before) == set(after), "events were added or removed"
    for id, row in after.items():
        old, same = before[id], ("status", "summary")
        assert all(row[name] == old[name] for name in same), f"{old['summary']} was changed"
        if id != "vendor12":
            assert (row["start_ms"], row["end_ms"]) == (old["start_ms"], old["end_ms"]), f"{old['summary']} was moved"
    moved = after["vendor12"]
    assert moved["end_ms"] - moved["start_ms"] == 45 * 60_000, "its length changed"
    assert moved["start_ms"] == 1773327600000, f"it starts at {moved['start_ms']}"
    assert json.loads(moved["data"]).get("location") == "Room 2", "its place was lost"


score(check)
