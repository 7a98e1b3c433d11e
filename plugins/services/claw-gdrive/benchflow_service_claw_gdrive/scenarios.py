"""Worlds: two of our own, and those that a task brings as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from benchflow_claw_kit.seeding import parse_instant
from benchflow_claw_kit.store import Row, Store
from benchflow_claw_kit.worlds import read_world, scenarios

from benchflow_service_claw_gdrive.access import ALPHABET, FOLDER, RANK, add_permission, add_user, root_of
from benchflow_service_claw_gdrive.drives import make_drive
from benchflow_service_claw_gdrive.formats import PREFIX, is_editor
from benchflow_service_claw_gdrive.labels import FIELD_TYPES
from benchflow_service_claw_gdrive.state import get_row, guess_type, insert_file, put_content

__all__ = ["SCENARIOS", "load", "prepare"]

_WORLDS = Path(__file__).with_name("worlds")
_VENDORS = ("Halden Hosting", "Brightline Print", "Corvid Analytics", "Mistral Couriers", "Tern Insurance")
_SPECIES = ("kelp gull", "harbour seal", "sea otter", "puffin", "minke whale")
_KINDS = {"folder", "document", "spreadsheet", "presentation", "form", "drawing"}
_FILE = {
    "id",
    "name",
    "kind",
    "mimeType",
    "content",
    "owner",
    "description",
    "starred",
    "trashed",
    "created",
    "modified",
    "modified_by",
    "properties",
    "appProperties",
    "shared",
    "files",
    "comments",
    "revisions",
    "shortcut_to",
    "labels",
    "access_requests",
}


def prepare(store: Store) -> None:
    if store.value("SELECT count(*) FROM drive_users") == 0:
        add_user(store, "alex@example.com", "Alex Morgan", True)


def load(store: Store, data: Mapping[str, Any]) -> None:
    _known(data, {"users", "files", "drives", "labels", "apps", "now"}, "scenario")
    _things(store, data)
    for user in data.get("users", []):
        add_user(store, user["email"], user.get("name", user["email"].partition("@")[0]), bool(user.get("primary")))
    prepare(store)
    first = str(store.value("SELECT email FROM drive_users ORDER BY is_primary DESC, email LIMIT 1"))
    for one in data.get("files", []):
        owner = one.get("owner", first)
        _file(store, one, owner, get_row(store, root_of(store, owner)), None)
    for one in data.get("drives", []):
        _known(one, {"id", "name", "members", "files"}, "drive")
        members = one.get("members", [{"email": first, "role": "organizer"}])
        drive = make_drive(store, one["name"], members[0]["email"], one.get("id"))
        for member in members[1:]:
            add_permission(store, drive, "user", _role(member["role"]), member["email"])
        for file in one.get("files", []):
            _file(store, file, file.get("owner", members[0]["email"]), None, drive)


def _things(store: Store, data: Mapping[str, Any]) -> None:
    for label in data.get("labels", []):
        _known(label, {"id", "fields"}, "label")
        for name, field in label.get("fields", {}).items():
            _known(field, {"type", "choices"}, f"label field {name}")
            if field["type"] not in FIELD_TYPES:
                raise ValueError(f"label field {name}: type is one of {', '.join(FIELD_TYPES)}")
        store.insert("drive_labels", id=label["id"], revision="1", fields=label.get("fields", {}))
    for app in data.get("apps", []):
        store.insert("drive_apps", id=app["id"], data=app)


def _known(given: Mapping[str, Any], keys: Iterable[str], what: str) -> None:
    unknown = set(given) - set(keys)
    if unknown:
        raise ValueError(f"{what}: unknown {', '.join(sorted(unknown))}; known: {', '.join(sorted(keys))}")


def _role(role: str) -> str:
    if role not in RANK:
        raise ValueError(f"role {role!r}: one of {', '.join(RANK)}")
    return role


def _mime_type(one: Mapping[str, Any]) -> str:
    kind = one.get("kind") or ("folder" if "files" in one else None)
    if "shortcut_to" in one:
        return PREFIX + "shortcut"
    if kind is None:
        return str(one.get("mimeType") or guess_type(one["name"], None, ""))
    if kind not in _KINDS:
        raise ValueError(f"kind {kind!r}: one of {', '.join(sorted(_KINDS))}")
    return PREFIX + str(kind)


def _file(store: Store, one: Mapping[str, Any], owner: str, parent: Row | None, drive: str | None) -> None:
    _known(one, _FILE, f"file {one.get('name')}")
    mime_type = _mime_type(one)
    created = parse_instant(one["created"]) if "created" in one else store.now_ms() - 86_400_000 * 30
    modified = parse_instant(one["modified"]) if "modified" in one else created
    row = insert_file(
        store,
        owner,
        one["name"],
        mime_type,
        parent,
        drive=drive,
        id=one.get("id"),
        description=one.get("description"),
        created=created,
        modified=modified,
        properties=one.get("properties"),
        app_properties=one.get("appProperties"),
        shortcut_target=one.get("shortcut_to"),
        trashed=int(bool(one.get("trashed"))),
    )
    _contents(store, one, row, owner, mime_type)
    store.update("drive_files", {"id": row["id"]}, modified=modified, modified_by=one.get("modified_by", owner))
    if one.get("starred"):
        store.update("drive_user_files", {"file": row["id"], "user": owner}, starred=1)
    for share in one.get("shared", []):
        kind = share.get("type", "user")
        more = {
            "domain": share.get("domain"),
            "shared": modified,
            "shared_by": owner,
            "discoverable": int(bool(share.get("discoverable"))),
        }
        add_permission(store, row["id"], kind, _role(share["role"]), share.get("email"), **more)
    for comment in one.get("comments", []):
        _comment(store, row["id"], comment, modified)
    for label, fields in one.get("labels", {}).items():
        store.insert("drive_file_labels", file=row["id"], label=label, fields=fields)
    for asked in one.get("access_requests", []):
        _known(asked, {"email", "role", "message"}, "access request")
        facts = {"requester": asked["email"], "recipient": asked["email"], "role": _role(asked.get("role", "reader"))}
        proposal = store.new_id("access proposal", 20, ALPHABET)
        message = asked.get("message", "")
        store.insert("drive_proposals", id=proposal, file=row["id"], message=message, created=modified, **facts)
    for child in one.get("files", []):
        _file(store, child, child.get("owner", owner), get_row(store, row["id"]), None)


def _contents(store: Store, one: Mapping[str, Any], row: Row, owner: str, mime_type: str) -> None:
    if mime_type in (FOLDER, PREFIX + "shortcut"):
        return
    for text in [*one.get("revisions", []), one.get("content", "")]:
        kind = "text/plain" if is_editor(mime_type) else mime_type
        put_content(store, row["id"], one.get("modified_by", owner), str(text).encode(), kind, one["name"])


def _comment(store: Store, file: str, one: Mapping[str, Any], at: int) -> None:
    _known(one, {"author", "content", "quoted", "resolved", "replies"}, "comment")
    comment = "AAAA" + store.new_id("comment", 7, ALPHABET)
    quoted = {"mimeType": "text/html", "value": one["quoted"]} if one.get("quoted") else None
    facts = {
        "author": one["author"],
        "content": one["content"],
        "quoted": quoted,
        "resolved": int(bool(one.get("resolved"))),
    }
    store.insert("drive_comments", id=comment, file=file, created=at, modified=at, **facts)
    for reply in one.get("replies", []):
        identity = "AAAA" + store.new_id("reply", 7, ALPHABET)
        texts = {"author": reply["author"], "content": reply["content"]}
        store.insert("drive_replies", id=identity, comment=comment, created=at, modified=at, **texts)


def office(random: Random) -> Mapping[str, Any]:
    """Larkspur, with a tidy finance folder, an untidy top level and one shared drive."""
    invoices = [
        {
            "name": f"invoice-{random.randint(1000, 9999)}-{vendor.split()[0].lower()}.txt",
            "content": f"Invoice\nVendor: {vendor}\nAmount: {random.randint(200, 4000)}.00 USD\n"
            f"Due: 2026-03-{random.randint(10, 28)}\n",
            "modified": f"2026-02-{random.randint(10, 27)}T10:00:00Z",
        }
        for vendor in random.sample(_VENDORS, 3)
    ]
    product, support = random.randint(125, 150), random.randint(82, 95)
    photos = [{"name": f"IMG_{random.randint(1000, 9999)}.jpg", "content": "jpeg"} for _ in range(3)]
    return read_world(_WORLDS / "office.json", invoices=invoices, product=product, support=support, photos=photos)


def lab(random: Random) -> Mapping[str, Any]:
    """A group that counts animals: raw data, drafts, a review under way."""
    species = random.sample(_SPECIES, 3)
    counts = [
        {
            "name": f"{name.replace(' ', '-')}-2026-{month:02d}.csv",
            "content": "site,count\n"
            + "".join(f"{site},{random.randint(0, 90)}\n" for site in ("north", "pier", "island")),
            "appProperties": {"species": name, "checked": "no"},
        }
        for name in species
        for month in (1, 2)
    ]
    return read_world(_WORLDS / "lab.json", counts=counts, animal=species[0])


SCENARIOS = scenarios(load, office, lab)
