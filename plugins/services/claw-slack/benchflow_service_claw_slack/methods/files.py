"""files.*: an upload is three steps: an address, the bytes, the completion that shares them."""

from __future__ import annotations

import mimetypes
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.blocks import blocks_of
from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments
from benchflow_service_claw_slack.methods.chat import author, deliver, thread_of, writable
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.channels import find_channel
from benchflow_service_claw_slack.objects.files import FILETYPES, find_file, may_see, show_file
from benchflow_service_claw_slack.paging import by_page

__all__ = ["file_kind"]

Answer = dict[str, Any]
MAX_BYTES = 100 * 1024 * 1024
_GROUPS = {
    "images": ("jpg", "png", "gif", "webp", "svg"),
    "pdfs": ("pdf",),
    "zips": ("zip",),
    "snippets": ("text", "markdown", "python", "javascript", "typescript", "shell", "html", "yaml", "csv", "json"),
    "gdocs": ("gdoc",),
    "spaces": ("space",),
}


def file_kind(name: str) -> tuple[str, str]:
    """MIME type and Slack's word for it, from the name."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    mime = mimetypes.guess_type(name)[0] or (
        "text/plain" if ending in ("md", "yaml", "yml", "") else "application/octet-stream"
    )
    kind = FILETYPES.get(ending, ending or "text")
    return (
        "text/plain" if mime.startswith("text/") or (kind in FILETYPES.values() and kind not in ("jpg",)) else mime
    ), kind


@method("files.getUploadURLExternal", "files:write")
def get_upload_url(call: SlackCall) -> Answer:
    name = call.need("filename")
    if not call.has("length"):
        raise bad_arguments("missing required field: length")
    length = call.number("length", 0, 0, MAX_BYTES, "invalid_arguments")
    mime, kind = file_kind(name)
    file = "F0" + call.store.new_id("file", 9, "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ")
    call.store.insert(
        "files",
        id=file,
        name=name,
        title=name,
        mimetype=mime,
        filetype=call.text("snippet_type") or kind,
        size=length,
        user=call.user,
        created=call.now,
        alt_text=call.text("alt_txt") or None,
        ready=0,
    )
    return {"upload_url": f"{call.base_url}/upload/v1/{file}", "file_id": file}


@method("files.completeUploadExternal", "files:write")
def complete_upload(call: SlackCall) -> Answer:
    given = call.structure("files", "invalid_arguments")
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) and one.get("id") for one in given):
        raise bad_arguments("missing required field: files")
    rows = [_uploaded(call, str(one["id"])) for one in given]
    targets = [call.text("channel_id")] if call.has("channel_id") else call.listed("channels")
    for one, row in zip(given, rows, strict=True):
        title = str(one.get("title") or row["name"])
        call.store.update("files", {"id": row["id"]}, title=title, ready=1)
    for channel in targets:
        call.args["channel"] = channel
        _share(call, [row["id"] for row in rows])
    shown = [call.store.one("SELECT * FROM files WHERE id = ?", row["id"]) for row in rows]
    return {"files": [show_file(call, row) for row in shown if row]}


def _uploaded(call: SlackCall, file: str) -> Row:
    row = call.store.one("SELECT * FROM files WHERE id = ? AND user = ?", file, call.user)
    if row is None:
        raise SlackError("file_not_found")
    if row["content"] is None:
        raise SlackError("file_update_failed")
    return row


def _share(call: SlackCall, files: list[str]) -> None:
    channel = find_channel(call)
    writable(call, channel)
    thread = thread_of(call, channel["id"])
    content = {"text": call.text("initial_comment"), "blocks": blocks_of(call)}
    row = deliver(call, channel, content, thread, False, files=files, **author(call, False))
    for file in files:
        call.store.insert("file_shares", file=file, channel=channel["id"], ts=row["ts"])


@method("files.info", "files:read")
def info(call: SlackCall) -> Answer:
    row = find_file(call)
    shown: Answer = {"file": show_file(call, row), "comments": [], "response_metadata": {"next_cursor": ""}}
    if row["content"] is not None and shown["file"]["mode"] == "snippet":
        text = bytes(row["content"]).decode("utf-8", "replace")
        shown |= {"content": text, "is_truncated": False}
    return shown


@method("files.list", "files:read")
def list_files(call: SlackCall) -> Answer:
    rows = call.store.all("SELECT * FROM files WHERE ready = 1 ORDER BY created DESC, id DESC")
    rows = [row for row in rows if may_see(call, row)]
    if call.has("user"):
        if not call.store.one("SELECT 1 FROM users WHERE id = ?", call.text("user")):
            raise SlackError("user_not_found")
        rows = [row for row in rows if row["user"] == call.text("user")]
    if call.has("channel"):
        channel = find_channel(call)["id"]
        shared = {r["file"] for r in call.store.all("SELECT file FROM file_shares WHERE channel = ?", channel)}
        rows = [row for row in rows if row["id"] in shared]
    kinds = [kind for kind in call.listed("types") if kind != "all"]
    if any(kind not in _GROUPS for kind in kinds):
        raise SlackError("unknown_type")
    if kinds:
        wanted = {ending for kind in kinds for ending in _GROUPS[kind]}
        rows = [row for row in rows if row["filetype"] in wanted]
    if call.has("ts_from"):
        rows = [row for row in rows if row["created"] >= call.number("ts_from", 0)]
    if call.has("ts_to"):
        rows = [row for row in rows if row["created"] <= call.number("ts_to", 0)]
    page, paging = by_page(call, rows)
    return {"files": [show_file(call, row) for row in page], "paging": paging}


@method("files.delete", "files:write")
def delete(call: SlackCall) -> Answer:
    row = find_file(call)
    if row["user"] != call.user and not call.me["is_admin"]:
        raise SlackError("cant_delete_file")
    for table in ("reactions", "stars"):
        call.store.run(f"DELETE FROM {table} WHERE file = ?", row["id"])
    call.store.delete("files", id=row["id"])
    return {}


@method("files.sharedPublicURL", "files:write:user", people_only=True)
def share_publicly(call: SlackCall) -> Answer:
    row = find_file(call)
    if row["public_url"]:
        raise SlackError("already_public")
    secret = call.store.new_id("public file", 10, "0123456789abcdef")
    address = f"https://slack-files.com/{call.team['id']}-{row['id']}-{secret}"
    call.store.update("files", {"id": row["id"]}, public_url=address)
    return {"file": show_file(call, find_file(call)), "comments": []}


@method("files.revokePublicURL", "files:write:user", people_only=True)
def revoke_public(call: SlackCall) -> Answer:
    row = find_file(call)
    call.store.update("files", {"id": row["id"]}, public_url=None)
    return {"file": show_file(call, find_file(call))}
