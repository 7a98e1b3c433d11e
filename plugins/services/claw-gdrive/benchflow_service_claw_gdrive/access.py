"""Who may do what: permissions of a file, of the folders above it, of its shared drive."""

from __future__ import annotations

import hashlib
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.store import Row, Store

__all__ = [
    "RANK",
    "current_user",
    "find_file",
    "is_shared",
    "may",
    "must",
    "not_found",
    "permission_id",
    "permissions_on",
    "role_of",
    "root_of",
    "show_user",
]

_IN_FORCE = """
SELECT * FROM drive_permissions
WHERE file = ? AND deleted = 0 AND (expires IS NULL OR expires = 0 OR expires > ?) ORDER BY rowid
"""
RANK = {"reader": 1, "commenter": 2, "writer": 3, "fileOrganizer": 4, "organizer": 5, "owner": 6}


def permission_id(what: str) -> str:
    """The same person has the same permission id everywhere."""
    return str(int.from_bytes(hashlib.blake2b(what.lower().encode(), digest_size=8).digest())).zfill(20)[:20]


def current_user(call: Call) -> str:
    """The token's user, who gets an own My Drive on first sight; without one the world's first user."""
    user = call.principal.user
    if user is None:
        return str(call.store.value("SELECT email FROM drive_users ORDER BY is_primary DESC, email LIMIT 1"))
    known = call.store.value("SELECT email FROM drive_users WHERE lower(email) = lower(?)", user)
    if known:
        return str(known)
    with call.store.transaction():
        add_user(call.store, user, user.partition("@")[0])
    return user


def add_user(store: Store, email: str, name: str, primary: bool = False) -> None:
    store.insert("drive_users", email=email, name=name, permission_id=permission_id(email), is_primary=int(primary))
    now = store.now_ms()
    root = "0A" + store.new_id("drive root", 17, ALPHABET)
    facts: dict[str, Any] = {
        "name": "My Drive",
        "mime_type": FOLDER,
        "owner": email,
        "is_root": 1,
        "created": now,
        "modified": now,
    }
    store.insert("drive_files", id=root, modified_by=email, **facts)
    add_permission(store, root, "user", "owner", email)


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
FOLDER = "application/vnd.google-apps.folder"


def add_permission(store: Store, file: str, kind: str, role: str, email: str | None = None, **more: Any) -> str:
    domain = more.get("domain")
    given = {"anyone": "anyoneWithLink", "domain": permission_id(f"domain {domain}") + "k"}.get(kind)
    identity = given or permission_id(str(email))
    if kind == "anyone" and more.get("discoverable"):
        identity = "anyone"
    store.insert("drive_permissions", replace=True, file=file, id=identity, type=kind, role=role, email=email, **more)
    return identity


def root_of(store: Store, user: str) -> str:
    return str(store.value("SELECT id FROM drive_files WHERE is_root = 1 AND owner = ?", user))


def show_user(call: Call, email: str | None) -> dict[str, Any]:
    row = call.store.one("SELECT * FROM drive_users WHERE email = ?", email or "")
    shown = {
        "kind": "drive#user",
        "displayName": row["name"] if row else (email or "").partition("@")[0],
        "me": email == current_user(call),
        "permissionId": row["permission_id"] if row else permission_id(email or ""),
    }
    return shown | ({"emailAddress": email} if email else {})


def permissions_on(store: Store, row: Row) -> list[Row]:
    """Its own, then what it inherits (with `inherited_from`); of two for one person the stronger one."""
    found: dict[str, Row] = {}
    at: Row | None = row
    seen: set[str] = set()
    while at is not None and at["id"] not in seen:
        seen.add(at["id"])
        _collect(store, found, at["id"], None if at["id"] == row["id"] else at["id"])
        if not at["parent"] and at["drive"] and at["drive"] not in seen:
            _collect(store, found, at["drive"], at["drive"])
            break
        at = store.one("SELECT * FROM drive_files WHERE id = ?", at["parent"]) if at["parent"] else None
        if at is not None and at["is_root"]:
            break
    return list(found.values())


def _collect(store: Store, found: dict[str, Row], item: str, source: str | None) -> None:
    for one in store.all(_IN_FORCE, item, store.now_ms()):  # an expired permission is gone, as in the real Drive
        if source is not None and one["role"] == "owner":
            one = {**one, "role": "writer"}
        known = found.get(one["id"])
        if known is None or RANK[known["role"]] < RANK[one["role"]]:
            found[one["id"]] = {**one, "inherited_from": source if known is None else known["inherited_from"]}


def _applies(one: Row, user: str) -> bool:
    if one["type"] in ("user", "group"):
        return bool((one["email"] or "").lower() == user.lower())
    if one["type"] == "domain":
        return user.lower().endswith("@" + (one["domain"] or "").lower())
    return bool(one["type"] == "anyone")


def role_of(store: Store, row: Row, user: str) -> str | None:
    """Return the strongest role that a user has on a file."""
    roles = [p["role"] for p in permissions_on(store, row) if _applies(p, user)]
    return max(roles, key=RANK.__getitem__, default=None)


def listed_for(store: Store, row: Row, user: str) -> bool:
    """In lists there is what was given to somebody, not what any link opens."""
    return any(_applies(p, user) and (p["type"] != "anyone" or p["discoverable"]) for p in permissions_on(store, row))


def is_shared(store: Store, row: Row) -> bool:
    return len(permissions_on(store, row)) > 1


def not_found(what: str, kind: str = "File", location: str = "fileId") -> ApiError:
    return ApiError(404, f"{kind} not found: {what}.", "notFound", location=location)


def find_file(call: Call, file: str | None = None, role: str = "reader") -> Row:
    """`root` is the caller's My Drive. What one may not see does not exist."""
    wanted = file if file is not None else call["fileId"]
    user = current_user(call)
    if wanted == "root":
        wanted = root_of(call.store, user)
    row = call.store.one("SELECT * FROM drive_files WHERE id = ?", wanted)
    have = role_of(call.store, row, user) if row else None
    if row is None or have is None:
        raise not_found(wanted)
    if RANK[have] < RANK[role]:
        raise insufficient()
    return row


def insufficient(what: str = "this file") -> ApiError:
    return ApiError(403, f"The user does not have sufficient permissions for {what}.", "insufficientFilePermissions")


def may(call: Call, row: Row, role: str) -> bool:
    have = role_of(call.store, row, current_user(call))
    return have is not None and RANK[have] >= RANK[role]


def must(call: Call, row: Row, role: str, what: str = "this file") -> None:
    if not may(call, row, role):
        raise insufficient(what)
