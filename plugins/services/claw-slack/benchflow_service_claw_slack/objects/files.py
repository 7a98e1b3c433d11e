"""Files and where they are shared."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.objects.channels import is_member
from benchflow_service_claw_slack.objects.messages import reaction_list

__all__ = ["FILETYPES", "find_file", "may_see", "show_file"]

FILETYPES = {
    "txt": "text",
    "md": "markdown",
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "sh": "shell",
    "jpeg": "jpg",
    "htm": "html",
    "yml": "yaml",
}
_PRETTY = {
    "text": "Plain Text",
    "markdown": "Markdown",
    "python": "Python",
    "pdf": "PDF",
    "csv": "CSV",
    "png": "PNG",
    "jpg": "JPEG",
}
_SNIPPETS = {"text", "markdown", "python", "javascript", "typescript", "shell", "html", "yaml", "csv", "json"}


def find_file(call: SlackCall, name: str = "file") -> Row:
    row = call.store.one("SELECT * FROM files WHERE id = ? AND ready = 1", call.need(name))
    if row is None or not may_see(call, row):
        raise SlackError("file_not_found")
    return row


def _shares(call: SlackCall, file: str) -> list[Row]:
    return call.store.all(
        "SELECT s.channel, s.ts, c.kind, c.name FROM file_shares s JOIN channels c ON c.id = s.channel"
        " WHERE s.file = ? ORDER BY s.ts",
        file,
    )


def may_see(call: SlackCall, row: Row) -> bool:
    if row["user"] == call.user:
        return True
    return any(
        s["kind"] == "channel" or is_member(call.store, s["channel"], call.user) for s in _shares(call, row["id"])
    )


def show_file(call: SlackCall, row: Row) -> dict[str, Any]:
    shares = _shares(call, row["id"])
    team, file = call.team, row["id"]
    address = f"{call.base_url}/files-pri/{team['id']}-{file}"
    shown: dict[str, Any] = {
        "id": file,
        "created": row["created"],
        "timestamp": row["created"],
        "name": row["name"],
        "title": row["title"],
        "mimetype": row["mimetype"],
        "filetype": row["filetype"],
        "pretty_type": _PRETTY.get(row["filetype"], row["filetype"].upper()),
        "user": row["user"],
        "user_team": team["id"],
        "editable": row["filetype"] in _SNIPPETS,
        "size": row["size"],
        "mode": "snippet" if row["filetype"] in _SNIPPETS else "hosted",
        "is_external": False,
        "external_type": "",
        "is_public": any(s["kind"] == "channel" for s in shares),
        "public_url_shared": bool(row["public_url"]),
        "display_as_bot": False,
        "username": "",
        "url_private": f"{address}/{row['name']}",
        "url_private_download": f"{address}/download/{row['name']}",
        "permalink": f"https://{team['domain']}.slack.com/files/{row['user']}/{file}/{row['name']}",
        "comments_count": 0,
        "is_starred": _starred(call, file),
        "shares": _share_map(shares),
        "channels": [s["channel"] for s in shares if s["kind"] == "channel"],
        "groups": [s["channel"] for s in shares if s["kind"] == "group"],
        "ims": [s["channel"] for s in shares if s["kind"] in ("im", "mpim")],
        "has_rich_preview": False,
        "file_access": "visible",
    }
    if row["alt_text"]:
        shown["alt_txt"] = row["alt_text"]
    if row["public_url"]:
        shown["permalink_public"] = row["public_url"]
    shown |= _elsewhere(call, file)
    reactions = reaction_list(call.store, file=file)
    return shown | ({"reactions": reactions} if reactions else {})


def _elsewhere(call: SlackCall, file: str) -> dict[str, Any]:
    """What is different about a file that lies elsewhere."""
    row = call.store.one("SELECT * FROM remote_files WHERE file = ?", file)
    if row is None:
        return {}
    shown = {"mode": "external", "is_external": True, "external_type": "app", "editable": False}
    address = row["external_url"]
    return {**shown, "external_id": row["external_id"], "external_url": address, "url_private": address}


def _starred(call: SlackCall, file: str) -> bool:
    return call.store.one("SELECT 1 FROM stars WHERE user = ? AND file = ?", call.user, file) is not None


def _share_map(shares: list[Row]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for share in shares:
        group = result.setdefault("public" if share["kind"] == "channel" else "private", {})
        group.setdefault(share["channel"], []).append(
            {"ts": share["ts"], "channel_name": share["name"] or "", "reply_users": [], "reply_count": 0}
        )
    return result
