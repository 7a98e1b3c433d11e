import json

want = {
    "planned": 8,
    "scored": 6,
    "passed": 3,
    "unscored": ["count-lines__2b", "make-server__3b"],
    "timed_out": ["edit-pdf__4a"],
    "not_comparable": ["edit-pdf__4b"],
    "total_tokens": 8112,
}
with open("/app/report.json") as file:
    found = json.load(file)
wrong = {key: found.get(key) for key in want if found.get(key) != want[key]}
assert not wrong, wrong
