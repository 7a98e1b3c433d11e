from client import call

ME = "/gmail/v1/users/me"
label = call("gmail", f"{ME}/labels", {"name": "Newsletters"})["id"]
for one in call("gmail", f"{ME}/messages", maxResults=500)["messages"]:
    full = call("gmail", f"{ME}/messages/{one['id']}", format="metadata")
    if any(h["name"].lower() == "list-unsubscribe" for h in full["payload"]["headers"]):
        change = {"addLabelIds": [label], "removeLabelIds": ["INBOX"]}
        call("gmail", f"{ME}/messages/{one['id']}/modify", change)
