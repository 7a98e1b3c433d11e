"""Every method, through the official client; its effect is seen through another method."""

from __future__ import annotations

import hashlib
import io
import zipfile
from datetime import datetime, timedelta

import pytest
from benchflow_claw_kit.effects import shows
from googleapiclient.http import MediaIoBaseDownload, MediaIoBaseUpload

pytestmark = pytest.mark.xdist_group("claw-gdrive-methods")

DOC = "application/vnd.google-apps.document"
SHEET = "application/vnd.google-apps.spreadsheet"
OFFICE = "application/vnd.openxmlformats-officedocument."
FOLDER = "application/vnd.google-apps.folder"
SHORTCUT = "application/vnd.google-apps.shortcut"


@shows("files.create files.update > files.get")
def test_a_file_is_made_read_and_changed(user):
    made = user.make("report.txt", b"hello", description="first", appProperties={"k": "v"})
    assert made["md5Checksum"] == hashlib.md5(b"hello").hexdigest() and made["size"] == "5"
    assert user.files.get_media(fileId=made["id"]).execute() == b"hello"
    assert set(user.files.get(fileId=made["id"]).execute()) == {"kind", "id", "name", "mimeType"}
    media = MediaIoBaseUpload(io.BytesIO(b"hello again"), "text/plain")
    user.files.update(
        fileId=made["id"], body={"name": "r2.txt", "appProperties": {"k": None, "n": "1"}}, media_body=media
    ).execute()
    seen = user.get(made["id"])
    assert (seen["name"], seen["size"], seen["appProperties"]) == ("r2.txt", "11", {"n": "1"})
    assert int(seen["version"]) > int(made["version"]) and seen["modifiedTime"] > made["modifiedTime"]
    assert seen["ownedByMe"] and seen["owners"][0]["emailAddress"] == user.address and seen["fileExtension"] == "txt"


def test_large_files_come_and_go_in_chunks(user):
    data = bytes(range(256)) * 3000
    media = MediaIoBaseUpload(io.BytesIO(data), "application/x-thing", chunksize=256 * 1024, resumable=True)
    made = user.files.create(body={"name": "big.bin"}, media_body=media, fields="id,sha256Checksum").execute()
    assert made["sha256Checksum"] == hashlib.sha256(data).hexdigest()
    got = io.BytesIO()
    loader = MediaIoBaseDownload(got, user.files.get_media(fileId=made["id"]), chunksize=300_000)
    while not loader.next_chunk()[1]:
        pass
    assert got.getvalue() == data


def test_ranges(server, user):
    made = user.make("r.txt", b"0123456789")["id"]
    for asked, status, body in (("bytes=2-4", 206, b"234"), ("bytes=-3", 206, b"789"), ("bytes=8-99", 206, b"89"), ("bytes=50-", 416, b""), ("lines=1", 200, b"0123456789")):  # fmt: skip
        request = user.files.get_media(fileId=made)
        request.headers["range"] = asked
        response, content = request.http.request(request.uri, headers=request.headers)
        assert (response.status, content) == (status, body), asked
        if status == 206:
            assert response["content-range"].endswith("/10")


def test_folders_hold_files_and_files_move(user, refused):
    here, there = user.folder("here"), user.folder("there")
    made = user.make("x.txt", b"x", parents=[here])["id"]
    assert user.find(f"'{here}' in parents") == ["x.txt"]
    user.files.update(fileId=made, addParents=there, removeParents=here).execute()
    assert user.find(f"'{there}' in parents") == ["x.txt"] and user.find(f"'{here}' in parents") == []
    user.files.update(fileId=here, addParents=there, removeParents="root").execute()
    assert user.get(here)["parents"] == [there]
    assert refused(user.files.update(fileId=there, addParents=here, removeParents="root"))[0] == 403
    assert refused(user.files.update(fileId=made, addParents=here)) == (403, "cannotAddParent")
    assert refused(user.files.update(fileId=made, body={"parents": [here]})) == (403, "fieldNotWritable")
    assert refused(user.files.create(body={"name": "y", "parents": [made]})) == (403, "parentNotAFolder")
    assert refused(user.files.create(body={"name": "y", "parents": [here, there]}))[0] == 403
    assert refused(user.files.create(body={"name": "y", "parents": ["nowhere"]})) == (404, "notFound")


@shows("files.delete files.emptyTrash > files.get")
def test_trash_and_delete(user, refused):
    folder = user.folder()
    made = user.make("t.txt", b"t", parents=[folder])["id"]
    user.files.update(fileId=folder, body={"trashed": True}).execute()
    seen = user.get(made)
    assert seen["trashed"] and not seen["explicitlyTrashed"] and user.find("trashed = false and name = 't.txt'") == []
    user.files.update(fileId=folder, body={"trashed": False}).execute()
    assert user.find("trashed = false and name = 't.txt'") == ["t.txt"]
    user.files.update(fileId=made, body={"trashed": True}).execute()
    user.files.emptyTrash().execute()
    assert refused(user.files.get(fileId=made)) == (404, "notFound")
    user.files.delete(fileId=folder).execute()
    assert refused(user.files.get(fileId=folder)) == (404, "notFound")


@shows("files.copy > files.get")
def test_copies(user, refused):
    made = user.make("orig.txt", b"data", properties={"a": "b"})["id"]
    copy = user.files.copy(fileId=made, body={"name": "copy.txt"}, fields="*").execute()
    assert (
        copy["name"] == "copy.txt" and copy["properties"] == {"a": "b"} and copy["parents"] == user.get(made)["parents"]
    )
    assert user.files.get_media(fileId=copy["id"]).execute() == b"data"
    assert user.files.copy(fileId=made).execute()["name"] == "Copy of orig.txt"
    assert refused(user.files.copy(fileId=user.folder())) == (403, "cannotCopyFile")


def test_shortcuts_and_stars(user, refused):
    made = user.make("target.txt", b"t")["id"]
    cut = user.make("cut", mimeType=SHORTCUT, shortcutDetails={"targetId": made})
    assert user.get(cut["id"])["shortcutDetails"] == {"targetId": made, "targetMimeType": "text/plain"}
    assert user.find(f"shortcutDetails.targetId = '{made}'") == ["cut"]
    assert refused(user.files.create(body={"name": "c", "mimeType": SHORTCUT}))[0] == 400
    user.files.update(fileId=made, body={"starred": True}).execute()
    assert user.find("starred = true") == ["target.txt"]


@shows("files.generateIds > files.create")
def test_ids_can_be_had_beforehand(user, refused):
    (one, two) = user.files.generateIds(count=2).execute()["ids"]
    assert user.make("mine", b"x", id=one)["id"] == one != two
    assert refused(user.files.create(body={"name": "again", "id": one})) == (409, "fileIdInUse")


@shows("files.create > files.export")
def test_google_kinds_are_imported_and_exported(user, refused):
    made = user.make("Doc", b"# Title\nline", "text/plain", mimeType=DOC)
    assert "size" not in made and "text/plain" in made["exportLinks"]
    assert user.files.export(fileId=made["id"], mimeType="text/plain").execute().decode("utf-8-sig") == "# Title\nline"
    assert user.files.export(fileId=made["id"], mimeType="application/pdf").execute().startswith(b"%PDF")
    assert b"<p>line</p>" in user.files.export(fileId=made["id"], mimeType="text/html").execute()
    sheet = user.make("Sheet", b"a,b\n1,2\n", "text/csv", mimeType=SHEET)["id"]
    assert user.files.export(fileId=sheet, mimeType="text/tab-separated-values").execute() == b"a\tb\r\n1\t2\r\n"
    assert refused(user.files.get_media(fileId=made["id"])) == (403, "fileNotDownloadable")
    assert refused(user.files.export(fileId=made["id"], mimeType="image/png"))[0] == 400
    assert refused(user.files.export(fileId=user.make("b.txt", b"x")["id"], mimeType="text/plain")) == (
        403,
        "fileNotExportable",
    )


TEXT = "Title & <co>\n\tdeep é 🎉 {x} \\ y\n\nend"
CELLS = 'Team,2026,"a ""q"", b"\nünï,120.5,-3\n007,1e5,x\n'


@pytest.mark.parametrize(
    ("kind", "text", "format"),
    [
        (DOC, TEXT, OFFICE + "wordprocessingml.document"),
        (DOC, TEXT, "application/vnd.oasis.opendocument.text"),
        (DOC, TEXT, "application/rtf"),
        (SHEET, CELLS, OFFICE + "spreadsheetml.sheet"),
        (SHEET, CELLS, "application/vnd.oasis.opendocument.spreadsheet"),
        (SHEET, CELLS, "text/tab-separated-values"),
    ],
)
def test_what_is_exported_can_be_imported_again(user, refused, kind, text, format):
    plain = "text/plain" if kind == DOC else "text/csv"
    made = user.make("One", text.encode(), plain, mimeType=kind)["id"]
    content = user.files.export(fileId=made, mimeType=format).execute()
    again = user.make("Two", content, format, mimeType=kind)["id"]
    assert user.files.export(fileId=again, mimeType=plain).execute().decode("utf-8-sig") == text
    if content.startswith(b"PK"):
        for broken in (b"PK nonsense", content[: len(content) // 2], _bomb(content)):
            media = MediaIoBaseUpload(io.BytesIO(broken), format)
            assert refused(user.files.create(body={"name": "x", "mimeType": kind}, media_body=media))[0] == 400


def _bomb(content):
    """The same with entities that would grow without end."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>' if name.endswith(".xml") else old.read(name))
    return out.getvalue()


def test_a_long_document_has_several_pages(user):
    made = user.make("Long", b"\n".join(b"line %d" % n for n in range(200)), "text/plain", mimeType=DOC)["id"]
    content = user.files.export(fileId=made, mimeType="application/pdf").execute()
    assert b"/Count 4" in content and b"(line 0)" in content and b"(line 199)" in content
    book = zipfile.ZipFile(io.BytesIO(user.files.export(fileId=made, mimeType="application/epub+zip").execute()))
    assert book.namelist()[0] == "mimetype" and b"line 199" in book.read("text.xhtml")


@shows(
    "permissions.create permissions.update > permissions.list",
    "permissions.update permissions.delete > permissions.get",
)
def test_permissions(user, other, refused):
    made = user.make("p.txt", b"p")["id"]
    assert refused(other.files.get(fileId=made)) == (404, "notFound")
    reader = user.share(made, other.address)
    assert other.get(made)["capabilities"]["canEdit"] is False and other.find("sharedWithMe = true") == ["p.txt"]
    assert other.get(made)["sharingUser"]["emailAddress"] == user.address
    assert refused(other.files.update(fileId=made, body={"name": "x"})) == (403, "insufficientFilePermissions")
    assert refused(other.drive.permissions().list(fileId=made))[0] == 403
    assert refused(other.drive.comments().create(fileId=made, body={"content": "x"}, fields="*"))[0] == 403
    user.drive.permissions().update(fileId=made, permissionId=reader, body={"role": "writer"}).execute()
    other.files.update(fileId=made, body={"name": "by other.txt"}).execute()
    assert user.get(made)["lastModifyingUser"]["emailAddress"] == other.address
    assert (
        user.drive.permissions().get(fileId=made, permissionId=reader, fields="*").execute()["emailAddress"]
        == other.address
    )
    roles = {p["role"] for p in user.drive.permissions().list(fileId=made).execute()["permissions"]}
    assert roles == {"owner", "writer"}
    assert refused(other.files.delete(fileId=made)) == (403, "insufficientFilePermissions")
    user.drive.permissions().delete(fileId=made, permissionId=reader).execute()
    assert refused(other.files.get(fileId=made)) == (404, "notFound")
    assert refused(user.drive.permissions().get(fileId=made, permissionId=reader)) == (404, "notFound")


def test_permissions_are_inherited_and_open_to_anyone(user, other, refused):
    folder = user.folder()
    made = user.make("inside.txt", b"i", parents=[folder])["id"]
    user.share(folder, other.address, "commenter")
    (mine,) = [
        p
        for p in user.drive.permissions().list(fileId=made, fields="*").execute()["permissions"]
        if p["emailAddress"] == other.address
    ]
    assert mine["role"] == "commenter" and mine["permissionDetails"][0]["inheritedFrom"] == folder
    assert refused(user.drive.permissions().delete(fileId=made, permissionId=mine["id"]))[0] == 403
    link = user.make("open.txt", b"o")["id"]
    user.drive.permissions().create(fileId=link, body={"type": "anyone", "role": "reader"}).execute()
    assert other.get(link)["name"] == "open.txt" and "open.txt" not in other.find()
    assert user.find("visibility = 'anyoneWithLink'") == ["open.txt"]


def test_a_permission_opens_nothing_after_it_expired(user, other, refused):
    """The world's clock goes on by a second with every change."""
    made = user.make("soon.txt", b"s")["id"]
    now = datetime.fromisoformat(user.files.get(fileId=made, fields="createdTime").execute()["createdTime"])
    reader = user.share(made, other.address)
    soon = (now + timedelta(seconds=6)).isoformat()
    body = {"role": "reader", "expirationTime": soon}
    user.drive.permissions().update(fileId=made, permissionId=reader, body=body).execute()
    assert other.get(made)["name"] == "soon.txt"
    for number in range(6):
        user.make(f"later-{number}.txt", b"")
    assert refused(other.files.get(fileId=made)) == (404, "notFound")
    assert refused(other.files.get_media(fileId=made)) == (404, "notFound")
    assert "soon.txt" not in other.find() and user.get(made)["name"] == "soon.txt"


def test_ownership_goes_on(user, other, refused):
    made = user.make("own.txt", b"o")["id"]
    other.make("something", b"x")
    body = {"type": "user", "role": "owner", "emailAddress": other.address}
    assert refused(user.drive.permissions().create(fileId=made, body=body)) == (403, "forbidden")
    user.drive.permissions().create(fileId=made, body=body, transferOwnership=True).execute()
    assert (
        other.get(made)["ownedByMe"] and user.get(made)["capabilities"]["canEdit"] and not user.get(made)["ownedByMe"]
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"type": "user", "role": "reader"}, 400),
        ({"type": "user", "role": "reader", "emailAddress": "nobody"}, 400),
        ({"type": "user", "role": "king", "emailAddress": "a@b.org"}, 400),
        ({"type": "alien", "role": "reader"}, 400),
        ({"role": "reader"}, 400),
        ({"type": "anyone"}, 400),
        ({"type": "domain", "role": "reader"}, 400),
        ({"type": "user", "role": "organizer", "emailAddress": "a@b.org"}, 403),
    ],
)
def test_bad_permissions(user, refused, body, status):
    made = user.make("p", b"p")["id"]
    assert refused(user.drive.permissions().create(fileId=made, body=body))[0] == status
    assert len(user.drive.permissions().list(fileId=made).execute()["permissions"]) == 1


@shows(
    "comments.create > comments.get",
    "comments.update comments.delete > comments.list",
    "replies.create replies.update > replies.get",
    "replies.delete > replies.list",
)
def test_comments_and_replies(user, other, refused):
    made = user.make("c.txt", b"c")["id"]
    user.share(made, other.address, "commenter")
    notes, answers = other.drive.comments(), user.drive.replies()
    quoted = {"mimeType": "text/plain", "value": "c"}
    note = notes.create(fileId=made, body={"content": "Why?", "quotedFileContent": quoted}, fields="*").execute()["id"]
    assert user.drive.comments().get(fileId=made, commentId=note, fields="*").execute()["quotedFileContent"] == quoted
    notes.update(fileId=made, commentId=note, body={"content": "Why not?"}, fields="*").execute()
    reply = answers.create(fileId=made, commentId=note, body={"content": "Because"}, fields="*").execute()["id"]
    answers.update(fileId=made, commentId=note, replyId=reply, body={"content": "Because."}, fields="*").execute()
    assert (
        other.drive.replies().get(fileId=made, commentId=note, replyId=reply, fields="content").execute()["content"]
        == "Because."
    )
    answers.create(fileId=made, commentId=note, body={"action": "resolve"}, fields="*").execute()
    (seen,) = other.drive.comments().list(fileId=made, fields="*").execute()["comments"]
    assert seen["resolved"] and seen["content"] == "Why not?" and len(seen["replies"]) == 2
    answers.delete(fileId=made, commentId=note, replyId=reply).execute()
    assert len(answers.list(fileId=made, commentId=note, fields="*").execute()["replies"]) == 1
    assert (
        refused(user.drive.comments().update(fileId=made, commentId=note, body={"content": "x"}, fields="*"))[0] == 403
    )
    notes.delete(fileId=made, commentId=note).execute()
    assert notes.list(fileId=made, fields="*").execute()["comments"] == []
    assert notes.list(fileId=made, includeDeleted=True, fields="*").execute()["comments"][0]["deleted"] is True
    assert refused(notes.list(fileId=made)) == (400, "required")
    assert refused(notes.create(fileId=made, body={"content": ""}, fields="*"))[0] == 400


@shows("files.update > revisions.list", "revisions.update > revisions.get", "revisions.delete > files.get")
def test_revisions(user, refused):
    made = user.make("v.txt", b"one")["id"]
    user.files.update(fileId=made, media_body=MediaIoBaseUpload(io.BytesIO(b"two"), "text/plain")).execute()
    revisions = user.drive.revisions()
    first, second = [one["id"] for one in revisions.list(fileId=made).execute()["revisions"]]
    assert user.get(made)["headRevisionId"] == second
    assert revisions.get_media(fileId=made, revisionId=first).execute() == b"one"
    revisions.update(fileId=made, revisionId=first, body={"keepForever": True}).execute()
    assert revisions.get(fileId=made, revisionId=first, fields="keepForever").execute() == {"keepForever": True}
    revisions.delete(fileId=made, revisionId=second).execute()
    assert user.files.get_media(fileId=made).execute() == b"one"
    assert refused(revisions.delete(fileId=made, revisionId=first))[0] == 400
    assert refused(revisions.get(fileId=made, revisionId="x")) == (404, "notFound")
    assert refused(revisions.list(fileId=user.folder())) == (403, "revisionsNotSupported")


@shows("files.create files.delete changes.getStartPageToken > changes.list")
def test_changes(user, other, refused):
    changes = user.drive.changes()
    token = changes.getStartPageToken().execute()["startPageToken"]
    made, gone = user.make("new.txt", b"n")["id"], user.make("gone.txt", b"g")["id"]
    user.files.delete(fileId=gone).execute()
    other.make("foreign.txt", b"f")
    seen = changes.list(pageToken=token).execute()
    assert [(c["fileId"], c["removed"]) for c in seen["changes"]] == [(made, False), (gone, True)]
    assert changes.list(pageToken=seen["newStartPageToken"]).execute()["changes"] == []
    page = changes.list(pageToken=token, pageSize=1).execute()
    assert len(page["changes"]) == 1
    assert changes.list(pageToken=page["nextPageToken"]).execute()["changes"][0]["fileId"] == gone
    assert refused(changes.list(pageToken="nonsense")) == (400, "invalid")


@shows("files.watch changes.watch channels.stop > channels.stop")
def test_channels_can_be_stopped_once(user, refused):
    made = user.make("w.txt", b"w")["id"]
    body = {"id": f"chan-{made}", "type": "web_hook", "address": "https://example.com/hook"}
    channel = user.files.watch(fileId=made, body=body).execute()
    stop = {"id": channel["id"], "resourceId": channel["resourceId"]}
    user.drive.channels().stop(body=stop).execute()
    assert refused(user.drive.channels().stop(body=stop)) == (404, "notFound")
    token = user.drive.changes().getStartPageToken().execute()["startPageToken"]
    channel = user.drive.changes().watch(pageToken=token, body={**body, "id": "c2-" + made}).execute()
    assert refused(user.drive.changes().watch(pageToken=token, body={**body, "id": "c2-" + made})) == (
        400,
        "channelIdNotUnique",
    )
    assert refused(user.files.watch(fileId=made, body={**body, "address": "http://x.org"}))[0] == 400
    stop = {"id": channel["id"], "resourceId": channel["resourceId"]}
    user.drive.channels().stop(body=stop).execute()
    assert refused(user.drive.channels().stop(body=stop)) == (404, "notFound")


@shows("drives.create drives.update drives.unhide > drives.list", "drives.hide drives.delete > drives.get")
def test_shared_drives(user, other, refused):
    drives = user.drive.drives()
    made = drives.create(requestId=f"r-{user.address}", body={"name": "Team space"}).execute()["id"]
    assert refused(drives.create(requestId=f"r-{user.address}", body={"name": "Twice"}))[0] == 409
    drives.update(driveId=made, body={"name": "Team room"}).execute()
    assert [d["name"] for d in drives.list(q="name contains 'room'").execute()["drives"]] == ["Team room"]
    drives.hide(driveId=made).execute()
    assert drives.get(driveId=made, fields="*").execute()["hidden"] is True
    drives.unhide(driveId=made).execute()
    assert drives.list(q="hidden = true").execute()["drives"] == []
    file = user.make("shared.txt", b"s", parents=[made])
    assert file["driveId"] == made and "owners" not in file
    everywhere = {"includeItemsFromAllDrives": True, "supportsAllDrives": True}
    assert user.find(f"'{made}' in parents", corpora="drive", driveId=made, **everywhere) == ["shared.txt"]
    assert "shared.txt" not in user.find()
    assert refused(other.drive.drives().get(driveId=made)) == (404, "notFound")
    user.share(made, other.address, "reader")
    assert other.get(file["id"])["capabilities"]["canEdit"] is False
    assert refused(drives.delete(driveId=made))[0] == 403
    user.files.delete(fileId=file["id"]).execute()
    drives.delete(driveId=made).execute()
    assert refused(drives.get(driveId=made)) == (404, "notFound")


@shows(
    "teamdrives.create teamdrives.update > teamdrives.get",
    "teamdrives.create > teamdrives.list",
    "teamdrives.delete > drives.get",
)
def test_team_drives_are_the_same_under_their_old_name(user, refused):
    old = user.drive.teamdrives()
    made = old.create(requestId=f"t-{user.address}", body={"name": "Old"}).execute()["id"]
    old.update(teamDriveId=made, body={"name": "Older"}).execute()
    assert (
        old.get(teamDriveId=made).execute()["name"]
        == user.drive.drives().get(driveId=made).execute()["name"]
        == "Older"
    )
    assert made in [one["id"] for one in old.list().execute()["teamDrives"]]
    old.delete(teamDriveId=made).execute()
    assert refused(user.drive.drives().get(driveId=made)) == (404, "notFound")


@shows("files.create > about.get")
def test_about(user, refused):
    assert refused(user.drive.about().get()) == (400, "required")
    before = int(user.drive.about().get(fields="storageQuota").execute()["storageQuota"]["usage"])
    user.make("q.bin", b"x" * 1000)
    seen = user.drive.about().get(fields="*").execute()
    assert int(seen["storageQuota"]["usage"]) == before + 1000 and seen["user"]["emailAddress"] == user.address
    assert DOC in seen["importFormats"]["text/plain"] and "text/csv" in seen["exportFormats"][SHEET]


def test_many_calls_in_one_batch(user):
    ids, found = [user.make(f"b{n}.txt", b"b")["id"] for n in range(3)], {}
    batch = user.drive.new_batch_http_request(callback=lambda key, answer, error: found.update({key: (answer, error)}))
    for file in [*ids, "missing"]:
        batch.add(user.files.get(fileId=file), request_id=file)
    batch.execute()
    assert [found[file][0]["name"] for file in ids] == ["b0.txt", "b1.txt", "b2.txt"] and found["missing"][
        1
    ].status_code == 404
