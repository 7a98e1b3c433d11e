#!/bin/bash
set -e
mail=$(curl -fsS 'http://localhost:9001/gmail/v1/users/me/messages?q=from:alice' | python3 -c 'import json, sys; print(json.load(sys.stdin)["messages"][0]["id"])')
curl -fsS "http://localhost:9001/gmail/v1/users/me/messages/$mail" | grep -q 'Meeting next week'
curl -fsS -H 'content-type: application/json' http://localhost:9003/calendar/v3/calendars/primary/events -d '{
  "summary": "Pier renovation kickoff", "location": "Lighthouse Room",
  "start": {"dateTime": "2026-03-11T14:30:00Z"}, "end": {"dateTime": "2026-03-11T15:15:00Z"},
  "attendees": [{"email": "alice@northpier.example"}]}'
