from client import call

channels = call("slack", "/api/conversations.list", limit=200)["channels"]
checkout = next(c["id"] for c in channels if c["name"] == "checkout")
report = next(
    m for m in call("slack", "/api/conversations.history", channel=checkout)["messages"] if "payments fail" in m["text"]
)
thread = call("slack", "/api/conversations.replies", channel=checkout, ts=report["ts"])["messages"]
made = call("slack", "/api/conversations.create", {"name": "inc-payments"})["channel"]["id"]
call("slack", "/api/conversations.setTopic", {"channel": made, "topic": report["text"].splitlines()[0]})
call("slack", "/api/conversations.invite", {"channel": made, "users": ",".join(sorted({m["user"] for m in thread}))})
call("slack", "/api/chat.postMessage", {"channel": made, "text": "Card payments fail: the gateway answers E4471."})
