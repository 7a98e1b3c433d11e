#!/bin/sh
exec python3 - <<'PY'
import json, urllib.request as u

for name in json.load(u.urlopen("http://localhost:8020/referrals")):
    if "nothing further" in json.load(u.urlopen(f"http://localhost:8100/notes/{name}"))["note"]:
        u.urlopen(u.Request(f"http://localhost:8020/referrals/{name}", json.dumps({"status": "closed"}).encode()))
PY
