"""files.list: the query language, order, pages, places to look."""

from __future__ import annotations

import pytest
from benchflow_claw_kit.effects import shows

pytestmark = pytest.mark.xdist_group("claw-gdrive-listing")

MINE = "'me' in owners"


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("name = 'notes.txt'", {"notes.txt"}),
        ("name != 'notes.txt' and name contains 'notes'", {"notes (1).txt"}),
        ("name contains 'logo'", {"logo-draft.svg", "logo-final.svg"}),
        ("name contains 'ogo'", set()),
        ("name contains 'fin' and mimeType = 'application/vnd.google-apps.folder'", {"Finance"}),
        ("mimeType contains 'spreadsheet'", {"Budget 2026"}),
        ("fullText contains 'insurance' and trashed = false", {"notes.txt", "notes (1).txt"}),
        ("fullText contains '\"add the rollback\"'", {"Spring launch plan"}),
        ("fullText contains '\"rollback the add\"'", set()),
        ("fullText contains 'sketch'", {"logo-draft.svg"}),
        ("trashed = true", {"Old contract.pdf"}),
        ("properties has { key='topic' and value='move' }", {"notes.txt"}),
        ("sharedWithMe", None),
        ("sharedWithMe = true", {"Spring launch plan"}),
        ("'priya@larkspur.example' in owners", {"Spring launch plan"}),
        ("'dan@larkspur.example' in writers and mimeType != 'application/vnd.google-apps.folder'", {"Budget 2026", "Employee handbook"}),
        ("'1LarkspurFinanceFolder' in parents and not name contains 'old'", {"Budget 2026", "Invoices 2026"}),
        ("modifiedTime > '2026-02-01T00:00:00' and mimeType = 'text/plain' and name contains 'invoice'", 3),
        ("createdTime > '2030-01-01T00:00:00Z'", set()),
        ("(name = 'notes.txt' or name = 'logo-draft.svg') and trashed = false", {"notes.txt", "logo-draft.svg"}),
        ("name = 'notes.txt' or name = 'logo-draft.svg' and trashed = true", set()),
        (r"name = 'it\'s not here'", set()),
        ("visibility = 'domainCanFind'", {"Employee handbook"}),
        ("name = ", None),
        ("size > 3", None),
        ("name like 'x'", None),
        ("(name = 'x'", None),
        ("modifiedTime > 'yesterday'", None),
        ("trashed = maybe", None),
        ("name = 'x' and", None),
        ("not " * 200 + "trashed = true", None),
    ],
)  # fmt: skip
def test_query(alex, refused, q, found):
    if found is None:
        assert refused(alex.files.list(q=q)) == (400, "invalid")
    elif isinstance(found, int):
        assert len(alex.find(q)) == found
    else:
        assert set(alex.find(q)) == found


@shows("files.create > files.list")
def test_order(user):
    for name in ("b10.txt", "b9.txt", "A.txt"):
        user.make(name, b"x" * len(name))
    user.folder("z-folder")
    assert user.find(MINE, orderBy="name") == ["A.txt", "b10.txt", "b9.txt", "z-folder"]
    assert user.find(MINE, orderBy="name_natural") == ["A.txt", "b9.txt", "b10.txt", "z-folder"]
    assert user.find(MINE, orderBy="folder,name desc") == ["z-folder", "b9.txt", "b10.txt", "A.txt"]
    assert user.find(MINE, orderBy="createdTime desc")[0] == "z-folder"
    assert user.find(MINE, orderBy="quotaBytesUsed desc")[0] == "b10.txt"


def test_pages(user, refused):
    for number in range(5):
        user.make(f"p{number}", b"x")
    request, seen = user.files.list(q=MINE, pageSize=2, orderBy="name"), []
    while request is not None:
        answer = request.execute()
        seen.append([one["name"] for one in answer["files"]])
        request = user.files.list_next(request, answer)
    assert seen == [["p0", "p1"], ["p2", "p3"], ["p4"]]
    token = user.files.list(q=MINE, pageSize=2, orderBy="name").execute()["nextPageToken"]
    assert refused(user.files.list(q=MINE, pageSize=2, orderBy="name desc", pageToken=token)) == (400, "invalid")
    assert refused(user.files.list(pageToken="nonsense")) == (400, "invalid")
    assert refused(user.files.list(orderBy="colour")) == (400, "invalid")
    assert refused(user.files.list(pageSize=0))[0] == 400


def test_fields(user, refused):
    user.make("f.txt", b"f")
    answer = user.files.list(fields="files(id,owners/emailAddress)").execute()
    assert set(answer) == {"files"} and set(answer["files"][0]) == {"id", "owners"}
    assert answer["files"][0]["owners"] == [{"emailAddress": user.address}]
    assert refused(user.files.list(fields="files(nonsense)"))[0] == 400


def test_places(alex, refused):
    everywhere = {"includeItemsFromAllDrives": True, "supportsAllDrives": True}
    drive = "0ALarkspurTeamDrive"
    assert set(alex.find(corpora="drive", driveId=drive, **everywhere)) == {"Brand", "colors.json", "Press release"}
    assert "colors.json" in alex.find("name contains 'colors'", corpora="allDrives", **everywhere)
    assert refused(alex.files.list(corpora="drive", driveId=drive))[0] == 400
    assert refused(alex.files.list(corpora="drive", **everywhere))[0] == 400
    assert refused(alex.files.list(corpora="moon"))[0] == 400
    assert refused(alex.files.list(corpora="drive", driveId="nowhere", **everywhere)) == (404, "notFound")
    assert alex.find(spaces="appDataFolder") == []
    assert "Salaries" not in alex.find() and "Employee handbook" in alex.find()
