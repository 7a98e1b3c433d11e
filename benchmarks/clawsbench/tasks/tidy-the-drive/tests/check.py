from world import rows, score


def check():
    files = {row["id"]: row for row in rows("gdrive", "SELECT * FROM drive_files")}
    before = {row["id"]: row for row in rows("gdrive", "SELECT * FROM drive_files", seed=True)}
    new = [row for id, row in files.items() if id not in before]
    assert len(new) == 1 and new[0]["name"] == "Archive" and new[0]["mime_type"].endswith(".folder"), new
    roots = [row["id"] for row in before.values() if row["is_root"] and row["owner"] == "alex@tidewater.example"]
    assert new[0]["parent"] in roots, "Archive is not in the root of My Drive"
    for id, row in before.items():
        wanted = new[0]["id"] if row["name"].startswith("draft-") else row["parent"]
        now = files.get(id)
        assert now and not now["trashed"] and now["name"] == row["name"], f"{row['name']} is gone"
        assert now["parent"] == wanted, f"{row['name']} is in the wrong folder"
    query = "SELECT file, role, email FROM drive_permissions WHERE deleted = 0 AND role != 'owner' AND email LIKE 'auditor%'"
    assert rows("gdrive", query) == [{"file": "annual", "role": "reader", "email": "auditor@corvid.example"}], rows(
        "gdrive", query
    )


score(check)
