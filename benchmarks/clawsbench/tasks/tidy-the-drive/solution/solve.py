from client import call

files = call("gdrive", "/drive/v3/files", q="trashed = false", fields="files(id,name,parents)", pageSize=200)["files"]
folder = call("gdrive", "/drive/v3/files", {"name": "Archive", "mimeType": "application/vnd.google-apps.folder"})["id"]
for file in files:
    if file["name"].startswith("draft-"):
        move = {"addParents": folder, "removeParents": ",".join(file.get("parents", []))}
        call("gdrive", f"/drive/v3/files/{file['id']}", {}, "PATCH", **move)
report = next(file["id"] for file in files if file["name"] == "Annual report.txt")
access = {"type": "user", "role": "reader", "emailAddress": "auditor@corvid.example"}
call("gdrive", f"/drive/v3/files/{report}/permissions", access)
