"""Users, bots and profiles."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_slack.call import SlackCall, SlackError

__all__ = ["bot_profile", "find_user", "profile", "show_user"]


def find_user(store: Store, user: str, error: str = "user_not_found") -> Row:
    row = store.one("SELECT * FROM users WHERE id = ?", user)
    if row is None:
        raise SlackError(error)
    return row


def _zone(name: str, at: int) -> tuple[str, int]:
    try:
        when = datetime.fromtimestamp(at, ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        when = datetime.fromtimestamp(at, UTC)
    offset = when.utcoffset()
    return when.tzname() or "UTC", int(offset.total_seconds()) if offset else 0


def profile(row: Row, team: Row) -> dict[str, Any]:
    own = json.loads(row["profile"])
    first, _, last = row["real_name"].partition(" ")
    shown = {
        "title": "",
        "phone": "",
        "skype": "",
        "real_name": row["real_name"],
        "real_name_normalized": row["real_name"],
        "display_name": "" if row["is_bot"] else row["name"],
        "display_name_normalized": "" if row["is_bot"] else row["name"],
        "fields": {},
        "status_text": "",
        "status_emoji": "",
        "status_emoji_display_info": [],
        "status_expiration": 0,
        "avatar_hash": "g" + row["id"].lower()[:11],
        **({"email": row["email"]} if row["email"] else {}),
        "first_name": first,
        "last_name": last,
        **own,
        "team": team["id"],
    }
    if "display_name" in own:
        shown["display_name_normalized"] = own["display_name"]
    if row["is_bot"]:
        shown |= {"bot_id": row["bot_id"], "api_app_id": team["app_id"], "always_active": True}
    for size in (24, 32, 48, 72, 192, 512):
        shown.setdefault(f"image_{size}", f"https://secure.gravatar.com/avatar/{row['id'].lower()}.jpg?s={size}")
    return shown


def show_user(call: SlackCall, row: Row) -> dict[str, Any]:
    label, offset = _zone(row["tz"], call.now)
    shown: dict[str, Any] = {
        "id": row["id"],
        "team_id": call.team["id"],
        "name": row["name"],
        "deleted": bool(row["deleted"]),
        "color": f"{sum(row['id'].encode()) * 7919 % 0xFFFFFF:06x}",
        "real_name": row["real_name"],
        "tz": row["tz"],
        "tz_label": label,
        "tz_offset": offset,
        "profile": profile(row, call.team),
        "is_admin": bool(row["is_admin"]),
        "is_owner": bool(row["is_owner"]),
        "is_primary_owner": False,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "is_bot": bool(row["is_bot"]),
        "is_app_user": False,
        "updated": row["updated"],
        "is_email_confirmed": not row["is_bot"],
        "who_can_share_contact_card": "EVERYONE",
    }
    if row["deleted"]:
        for name in ("color", "real_name", "tz", "tz_label", "tz_offset", "is_admin", "is_owner", "is_primary_owner"):
            shown.pop(name, None)
    if call.scopes is not None and "users:read.email" not in call.scopes:
        shown["profile"].pop("email", None)
    return shown


def bot_profile(row: Row, team: Row) -> dict[str, Any]:
    return {
        "id": row["bot_id"],
        "app_id": team["app_id"],
        "user_id": row["id"],
        "name": row["real_name"],
        "icons": {
            f"image_{size}": f"https://a.slack-edge.com/80588/img/plugins/app/bot_{size}.png" for size in (36, 48, 72)
        },
        "deleted": bool(row["deleted"]),
        "updated": row["updated"],
        "team_id": team["id"],
    }
