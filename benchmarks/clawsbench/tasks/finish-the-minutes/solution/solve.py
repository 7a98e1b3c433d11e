from client import call

path = "/v1/documents/minutes-2026-03-02"
end = call("gdoc", path)["body"]["content"][-1]["endIndex"]
words = {"[DATE]": "2 March 2026", "[ATTENDEES]": "Priya Nair, Tomasz Lewandowski, Grace Okafor"}
requests = [{"insertText": {"location": {"index": end - 1}, "text": "\nNext meeting: 9 March 2026"}}]
for old, new in words.items():
    requests.append({"replaceAllText": {"containsText": {"text": old, "matchCase": True}, "replaceText": new}})
call("gdoc", f"{path}:batchUpdate", {"requests": requests})
