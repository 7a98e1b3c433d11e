import base64
import json
import urllib.request

from client import call

ME = "/gmail/v1/users/me"
(found,) = call("gmail", f"{ME}/messages", q='subject:"Signed contract"')["messages"]
message = call("gmail", f"{ME}/messages/{found['id']}", format="full")
part = next(p for p in message["payload"]["parts"] if p.get("filename"))
body = part["body"]
if "attachmentId" in body:
    body = call("gmail", f"{ME}/messages/{found['id']}/attachments/{body['attachmentId']}")
data = base64.urlsafe_b64decode(body["data"] + "===")
(folder,) = call(
    "gdrive", "/drive/v3/files", q="name = 'Contracts' and mimeType = 'application/vnd.google-apps.folder'"
)["files"]
facts = json.dumps({"name": part["filename"], "parents": [folder["id"]]}).encode()
edge = b"edge-of-this-upload"
parts = [
    b"--" + edge,
    b"Content-Type: application/json",
    b"",
    facts,
    b"--" + edge,
    b"Content-Type: text/plain",
    b"",
    data,
    b"--" + edge + b"--",
    b"",
]
url = "http://localhost:9005/upload/drive/v3/files?uploadType=multipart"
headers = {"content-type": f"multipart/related; boundary={edge.decode()}"}
urllib.request.urlopen(urllib.request.Request(url, b"\r\n".join(parts), headers)).read()
call("gmail", f"{ME}/messages/{found['id']}/modify", {"addLabelIds": ["STARRED"], "removeLabelIds": ["UNREAD"]})
