import base64
from email.message import EmailMessage

from client import call

ME = "/gmail/v1/users/me"
asked = call("gmail", f"{ME}/messages", q="from:nadia@halden.example subject:invoice")["messages"][0]
full = call("gmail", f"{ME}/messages/{asked['id']}", format="full")
headers = {h["name"].lower(): h["value"] for h in full["payload"]["headers"]}
reply = EmailMessage()
reply["To"], reply["Subject"] = "nadia@halden.example", f"Re: {headers['subject']}"
reply["In-Reply-To"] = reply["References"] = headers["message-id"]
reply.set_content("Hi Nadia, it is invoice TW-2026-0233, over EUR 1,519.05. Best, Alex")
raw = base64.urlsafe_b64encode(reply.as_bytes()).decode()
call("gmail", f"{ME}/messages/send", {"raw": raw, "threadId": asked["threadId"]})
