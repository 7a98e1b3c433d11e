"""users.*"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.conversations import kinds_of, visible_channels
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import is_member, show_channel
from benchflow_service_claw_slack.objects.users import find_user, profile, show_user
from benchflow_service_claw_slack.paging import by_cursor

__all__: list[str] = []

Answer = dict[str, Any]
_PROFILE = {
    "avatar_hash",
    "display_name",
    "email",
    "fields",
    "first_name",
    "last_name",
    "phone",
    "pronouns",
    "real_name",
    "skype",
    "start_date",
    "status_emoji",
    "status_expiration",
    "status_text",
    "title",
}


@method("users.list", "users:read")
def list_users(call: SlackCall) -> Answer:
    rows = call.store.all("SELECT * FROM users ORDER BY id")
    page, metadata = by_cursor(call, rows, "user", default=max(len(rows), 1))
    return {"members": [show_user(call, row) for row in page], "cache_ts": call.now, **metadata}


@method("users.info", "users:read")
def info(call: SlackCall) -> Answer:
    return {"user": show_user(call, find_user(call.store, call.need("user", "user_not_found")))}


@method("users.lookupByEmail", "users:read.email")
def by_email(call: SlackCall) -> Answer:
    row = call.store.one("SELECT * FROM users WHERE lower(email) = lower(?)", call.need("email", "users_not_found"))
    if row is None or row["deleted"]:
        raise SlackError("users_not_found")
    return {"user": show_user(call, row)}


@method("users.identity", "identity.basic", people_only=True)
def identity(call: SlackCall) -> Answer:
    user = {"name": call.me["real_name"], "id": call.user, "email": call.me["email"]}
    return {"user": user, "team": {"id": call.team["id"], "name": call.team["name"]}}


@method("users.conversations")
def conversations(call: SlackCall) -> Answer:
    """Those somebody is in; of private ones only what the caller is in too."""
    user = find_user(call.store, call.text("user") or call.user)["id"]
    kinds = kinds_of(call)
    rows = [row for row in visible_channels(call, kinds, user) if is_member(call.store, row["id"], user)]
    rows = [row for row in rows if row["kind"] == "channel" or is_member(call.store, row["id"], call.user)]
    if call.flag("exclude_archived"):
        rows = [row for row in rows if not row["is_archived"]]
    page, metadata = by_cursor(call, rows, "channel")
    return {"channels": [show_channel(call, row) for row in page], **metadata}


@method("users.getPresence", "users:read")
def get_presence(call: SlackCall) -> Answer:
    row = find_user(call.store, call.text("user") or call.user)
    presence = "away" if row["manual_presence"] == "away" else row["presence"]
    if row["id"] != call.user:
        return {"presence": presence}
    online = row["presence"] == "active"
    return {
        "presence": presence,
        "online": online,
        "auto_away": not online,
        "manual_away": row["manual_presence"] == "away",
        "connection_count": int(online),
        "last_activity": call.now,
    }


@method("users.setPresence", "users:write")
def set_presence(call: SlackCall) -> Answer:
    if call.text("presence") not in ("auto", "away"):
        raise SlackError("invalid_presence")
    call.store.update("users", {"id": call.user}, manual_presence=call.text("presence"))
    return {}


@method("users.profile.get", "users.profile:read")
def get_profile(call: SlackCall) -> Answer:
    return {"profile": profile(find_user(call.store, call.text("user") or call.user), call.team)}


@method("users.profile.set", "users.profile:write", people_only=True)
def set_profile(call: SlackCall) -> Answer:
    """`profile` as JSON, or one `name` with its `value`. Another person's only for an administrator."""
    user = call.text("user") or call.user
    if user != call.user and not call.me["is_admin"]:
        raise SlackError("not_admin")
    row = find_user(call.store, user)
    given = call.structure("profile", "invalid_profile")
    if given is None and call.has("name"):
        given = {call.text("name"): call.text("value")}
    if not isinstance(given, dict) or not given:
        raise SlackError("invalid_profile")
    _check_profile(call, given)
    own = json.loads(row["profile"])
    columns: dict[str, Any] = {}
    if given.get("email"):
        columns["email"] = given["email"]
    if given.get("first_name") or given.get("last_name"):
        first, _, last = row["real_name"].partition(" ")
        given["real_name"] = f"{given.get('first_name', first)} {given.get('last_name', last)}".strip()
    if given.get("real_name"):
        columns["real_name"] = given["real_name"]
    own |= {name: value for name, value in given.items() if name not in ("email", "real_name")}
    if own.get("status_text") and not own.get("status_emoji"):
        own["status_emoji"] = ":speech_balloon:"
    if not own.get("status_text") and not own.get("status_emoji"):
        own.pop("status_expiration", None)
    call.store.update("users", {"id": user}, profile=own, updated=call.now, **columns)
    return {"profile": profile(find_user(call.store, user), call.team), "username": row["name"]}


def _check_profile(call: SlackCall, given: Answer) -> None:
    for name, value in given.items():
        if name not in _PROFILE:
            raise SlackError("reserved_name" if name.startswith("image") else "profile_set_failed")
        if name == "fields":
            if not isinstance(value, dict):
                raise SlackError("invalid_profile")
        elif name == "status_expiration":
            if not str(value).isdigit():
                raise SlackError("invalid_profile")
            given[name] = int(value)
        elif not isinstance(value, str):
            raise SlackError("invalid_profile")
    if len(given.get("status_text", "")) > 100:
        raise SlackError("profile_status_set_failed_too_long")
    email = given.get("email")
    if email is not None:
        if "@" not in email:
            raise SlackError("invalid_profile")
        taken = call.store.one("SELECT id FROM users WHERE lower(email) = lower(?)", email)
        if taken and taken["id"] != (call.text("user") or call.user):
            raise SlackError("email_taken")
    if given.get("display_name") and len(given["display_name"]) > 80:
        raise SlackError("invalid_profile")


_SIZES = (24, 32, 48, 72, 192, 512)
_IMAGES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg", b"GIF8": "gif"}


@method("users.setPhoto", "users.profile:write", people_only=True)
def set_photo(call: SlackCall) -> Answer:
    """The picture itself is not kept, only that it is another one now: its digest is in every address."""
    _, content = call.files.get("image", ("", b""))
    if not content:
        raise SlackError("bad_image")
    ending = next((kind for start, kind in _IMAGES.items() if content.startswith(start)), None)
    if ending is None:
        raise SlackError("bad_image")
    if len(content) > 1024 * 1024:
        raise SlackError("too_large")
    digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()[:12]
    base = f"https://avatars.slack-edge.com/{call.team['id']}-{call.user}-{digest}"
    pictures = {f"image_{size}": f"{base}_{size}.{ending}" for size in _SIZES}
    pictures |= {"image_original": f"{base}_original.{ending}", "avatar_hash": digest}
    own = json.loads(find_user(call.store, call.user)["profile"]) | pictures
    call.store.update("users", {"id": call.user}, profile=own, updated=call.now)
    return {"profile": pictures}


@method("users.deletePhoto", "users.profile:write", people_only=True)
def delete_photo(call: SlackCall) -> Answer:
    own = json.loads(find_user(call.store, call.user)["profile"])
    kept = {name: value for name, value in own.items() if not name.startswith("image_") and name != "avatar_hash"}
    call.store.update("users", {"id": call.user}, profile=kept, updated=call.now)
    return {}
