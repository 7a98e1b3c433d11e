#!/bin/sh
exec python3 - <<'PY'
import json, urllib.request

world = json.load(urllib.request.urlopen("http://localhost:8200/audit"))
print(world)
states = {name: referral["status"] for name, referral in world["referrals"].items()}
right = world["task"] == "close-the-referral" and states == {"R-17": "closed", "R-18": "open"}
open("/logs/verifier/reward.txt", "w").write(str(int(right)))
PY
