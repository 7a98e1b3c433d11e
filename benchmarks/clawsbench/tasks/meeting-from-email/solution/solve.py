from client import call

event = {
    "summary": "Pier renovation kickoff",
    "location": "Lighthouse Room",
    "start": {"dateTime": "2026-03-11T14:30:00Z"},
    "end": {"dateTime": "2026-03-11T15:15:00Z"},
    "attendees": [{"email": "alice@northpier.example"}],
}
call("gcal", "/calendar/v3/calendars/primary/events", event)
