"""files.remote.*: files that lie elsewhere and are shown here."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments
from benchflow_service_claw_slack.methods.chat import author, deliver, writable
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel
from benchflow_service_claw_slack.objects.files import may_see, show_file
from benchflow_service_claw_slack.paging import by_cursor

__all__: list[str] = []

Answer = dict[str, Any]
_SQL = "SELECT f.* FROM files f JOIN remote_files r ON r.file = f.id"


def _find(call: SlackCall) -> Row:
    """By our id or by the one the other place has; one of them."""
    if call.has("file") == call.has("external_id"):
        raise bad_arguments("exactly one of file and external_id must be given")
    column, value = ("f.id", call.text("file")) if call.has("file") else ("r.external_id", call.text("external_id"))
    row = call.store.one(f"{_SQL} WHERE {column} = ?", value)
    if row is None or not may_see(call, row):
        raise SlackError("file_not_found")
    return row


def _url(call: SlackCall) -> str:
    url = call.need("external_url")
    if not url.startswith(("http://", "https://")):
        raise SlackError("invalid_external_url")
    return url


@method("files.remote.add", "remote_files:write")
def add(call: SlackCall) -> Answer:
    external, url, title = call.need("external_id"), _url(call), call.need("title")
    if call.store.one("SELECT 1 FROM remote_files WHERE external_id = ?", external):
        raise SlackError("external_id_already_exists")
    file = "F0" + call.store.new_id("file", 9, "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    kind = call.text("filetype") or "remote"
    facts: Answer = {"name": title, "title": title, "filetype": kind, "size": 0}
    facts |= {"mimetype": "application/vnd.slack-remote", "user": call.user, "created": call.now}
    call.store.insert("files", id=file, **facts)
    call.store.insert("remote_files", file=file, external_id=external, external_url=url)
    call.args = {"file": file}
    return {"file": show_file(call, _find(call))}


@method("files.remote.update", "remote_files:write")
def update(call: SlackCall) -> Answer:
    row = _find(call)
    if call.has("external_url"):
        call.store.update("remote_files", {"file": row["id"]}, external_url=_url(call))
    columns = {name: call.text(name) for name in ("title", "filetype") if call.has(name)}
    if columns:
        call.store.update("files", {"id": row["id"]}, **columns)
    return {"file": show_file(call, _find(call))}


@method("files.remote.info", "remote_files:read")
def info(call: SlackCall) -> Answer:
    return {"file": show_file(call, _find(call))}


@method("files.remote.list", "remote_files:read")
def list_remote(call: SlackCall) -> Answer:
    rows = [row for row in call.store.all(f"{_SQL} ORDER BY f.created DESC, f.id DESC") if may_see(call, row)]
    if call.has("channel"):
        channel = find_channel(call)["id"]
        shared = {one["file"] for one in call.store.all("SELECT file FROM file_shares WHERE channel = ?", channel)}
        rows = [row for row in rows if row["id"] in shared]
    low, high = call.number("ts_from", 0), call.number("ts_to", 2**53)
    page, metadata = by_cursor(call, [row for row in rows if low <= row["created"] <= high], "remote file")
    return {"files": [show_file(call, row) for row in page], **metadata}


@method("files.remote.share", "remote_files:share")
def share(call: SlackCall) -> Answer:
    row, channels = _find(call), call.listed("channels")
    if not channels:
        raise bad_arguments("missing required field: channels")
    for one in channels:
        call.args["channel"] = one
        channel = find_channel(call)
        writable(call, channel)
        message = deliver(call, channel, {"text": ""}, None, False, files=[row["id"]], **author(call, False))
        call.store.insert("file_shares", file=row["id"], channel=channel["id"], ts=message["ts"])
    return {"file": show_file(call, row)}


@method("files.remote.remove", "remote_files:write")
def remove(call: SlackCall) -> Answer:
    row = _find(call)
    if row["user"] != call.user and not call.me["is_admin"]:
        raise SlackError("cant_delete_file")
    call.store.delete("remote_files", file=row["id"])
    call.store.delete("files", id=row["id"])
    return {}
