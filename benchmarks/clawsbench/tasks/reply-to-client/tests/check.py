import json

from world import rows, score


def check():
    mine = "SELECT * FROM messages WHERE user = 'alex@tidewater.example'"
    sent = [m for m in rows("gmail", mine) if "SENT" in json.loads(m["labels"])]
    assert len(sent) == 1, f"one message was to be sent, not {len(sent)}"
    (reply,) = sent
    asked = next(m for m in rows("gmail", mine, seed=True) if m["subject"] == "Our last invoice")
    assert reply["thread_id"] == asked["thread_id"], "not in the thread of the question"
    assert reply["subject"].lower() == "re: our last invoice", reply["subject"]
    everyone = f"{reply['recipients']} {reply['cc']} {reply['bcc']}".lower()
    assert "nadia@halden.example" in everyone and everyone.count("@") == 1, everyone
    assert "TW-2026-0233" in reply["body"] and "1,519.05" in reply["body"], reply["body"]
    assert "0117" not in reply["body"] and "0234" not in reply["body"], "another invoice is mentioned"


score(check)
