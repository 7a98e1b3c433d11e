from client import call

call("gdoc", "/v1/documents/launch-plan")
event = {"summary": "Spring launch", "start": {"date": "2026-04-21"}, "end": {"date": "2026-04-22"}}
call("gcal", "/calendar/v3/calendars/primary/events", event)
channels = {c["name"]: c["id"] for c in call("slack", "/api/conversations.list", limit=200)["channels"]}
call(
    "slack",
    "/api/chat.postMessage",
    {"channel": channels["announcements"], "text": "The spring launch is on 2026-04-21."},
)
