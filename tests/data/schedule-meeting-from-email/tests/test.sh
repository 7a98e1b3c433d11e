#!/bin/bash
python3 - <<'PY'
import sqlite3

calendar = sqlite3.connect("/srv/claws/gcal.db")
rows = calendar.execute("SELECT summary, start_ms FROM events ORDER BY start_ms").fetchall()
print(rows)
old = [("Team standup", 1773219600000), ("Dentist", 1773244800000)]
reward = sorted(rows) == sorted([*old, ("Pier renovation kickoff", 1773239400000)])
with open("/logs/verifier/reward.txt", "w") as file:
    file.write("1" if reward else "0")
PY
