from client import call

moved = {"start": {"dateTime": "2026-03-12T15:00:00Z"}, "end": {"dateTime": "2026-03-12T15:45:00Z"}}
call("gcal", "/calendar/v3/calendars/primary/events/vendor12", moved, "PATCH")
