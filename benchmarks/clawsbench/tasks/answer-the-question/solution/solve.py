from client import call

channels = {c["name"]: c["id"] for c in call("slack", "/api/conversations.list", limit=200)["channels"]}
asked = next(
    m
    for m in call("slack", "/api/conversations.history", channel=channels["design"])["messages"]
    if "shade" in m["text"]
)
reply = {"channel": channels["design"], "thread_ts": asked["ts"], "text": "The new buttons are #1d4e89."}
call("slack", "/api/chat.postMessage", reply)
call(
    "slack", "/api/reactions.add", {"channel": channels["design"], "timestamp": asked["ts"], "name": "white_check_mark"}
)
