"""One request: which method, whose token, which scopes; then `ok: true` with what the method says, or `ok: false`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from benchflow_claw_kit.http import Request, Response, json_response
from benchflow_claw_kit.store import Row, Store

from benchflow_service_claw_slack.body import Arguments, arguments
from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods import METHODS, SlackMethod
from benchflow_service_claw_slack.methods.files import MAX_BYTES
from benchflow_service_claw_slack.methods.scheduled import post_what_is_due
from benchflow_service_claw_slack.objects.files import may_see

__all__ = ["handle"]

_RETIRED = ("channels.", "groups.", "im.", "mpim.")
_READS = ("list", "info", "get", "test", "history", "replies", "members", "messages", "all", "files", "conversations")


def handle(request: Request, store: Store) -> Response:
    path = request.path
    if path.startswith("/upload/v1/"):
        return _receive(request, store, path.removeprefix("/upload/v1/"))
    if path.startswith("/files-pri/"):
        return _download(request, store, path.removeprefix("/files-pri/"))
    if path.startswith("/lists-export/"):
        return _exported(request, store, path.removeprefix("/lists-export/"))
    name = unquote(path.strip("/").removeprefix("api/"))
    headers = {"X-Slack-Req-Id": "claw", "Cache-Control": "private, no-cache, no-store, must-revalidate"}
    try:
        with store.transaction():
            value, more = _call(request, store, name)
    except SlackError as error:
        body = {"ok": False, "error": error.error, **error.extra}
        answer = json_response(body, error.status, {**headers, **error.headers}, pretty=False)
        return replace(answer, refused=error.error)
    return json_response(value, 200, {**headers, **more}, pretty=False)


def _call(request: Request, store: Store, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    method = METHODS.get(name)
    if method is None and (name.startswith(_RETIRED) or name == "files.upload"):
        raise SlackError("method_deprecated")
    if method is None:
        raise SlackError("unknown_method", req_method=name[:200])
    _limit(store, name)
    args, files = arguments(request)
    call = _identified(request, store, method, args)
    call.files = files
    if method.people_only and call.is_bot:
        raise SlackError("not_allowed_token_type")
    call.need_scope(*method.scopes)
    post_what_is_due(store)
    if not name.rpartition(".")[2].startswith(_READS):
        store.tick()
    answer = {"ok": True, **method.run(call)}
    if call.warnings:
        answer["warning"] = ",".join(call.warnings)
        answer.setdefault("response_metadata", {})["warnings"] = call.warnings
    headers = {}
    if call.scopes is not None:
        headers["X-OAuth-Scopes"] = ",".join(sorted(call.scopes))
    if method.scopes:
        headers["X-Accepted-OAuth-Scopes"] = ",".join(method.scopes)
    return answer, headers


def _limit(store: Store, name: str) -> None:
    """A world may set limits; Slack's own are not imitated unasked."""
    row = store.one("SELECT * FROM rate_limits WHERE method IN (?, '*') ORDER BY method DESC LIMIT 1", name)
    if row is None:
        return
    now = int(time.time())
    if now - row["window"] >= row["seconds"]:
        store.update("rate_limits", {"method": row["method"]}, window=now, used=1)
    elif row["used"] >= row["calls"]:
        wait = row["window"] + row["seconds"] - now
        raise SlackError("ratelimited", 429, {"Retry-After": str(max(1, wait))})
    else:
        store.update("rate_limits", {"method": row["method"]}, used=row["used"] + 1)


def token_of(request: Request, args: Arguments) -> str:
    kind, _, token = request.header("authorization").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return str(args.get("token") or "").strip()


def identity(store: Store, token: str) -> tuple[Row, frozenset[str] | None]:
    """The token's user and scopes. An unknown `xoxp-…` is the first person, any other `xox…` the app's bot."""
    team = _team(store)
    if not token:
        raise SlackError("not_authed")
    known = store.one("SELECT * FROM tokens WHERE token = ?", token)
    if known is None:
        if team["strict_tokens"] or not token.startswith("xox"):
            raise SlackError("invalid_auth")
        user, scopes = team["primary_user"] if token.startswith("xoxp") else team["bot_user"], None
    else:
        if known["revoked"]:
            raise SlackError("token_revoked")
        user = known["user"]
        scopes = None if known["scopes"] is None else frozenset(known["scopes"].replace(",", " ").split())
    row = store.one("SELECT * FROM users WHERE id = ?", user or "")
    if row is None:
        raise SlackError("invalid_auth")
    if row["deleted"]:
        raise SlackError("account_inactive")
    return row, scopes


def _team(store: Store) -> Row:
    team = store.one("SELECT * FROM team LIMIT 1")
    if team is None:
        raise SlackError("team_not_found")
    return team


def _identified(request: Request, store: Store, method: SlackMethod, args: Arguments) -> SlackCall:
    token = token_of(request, args)
    team = _team(store)
    base = f"http://{request.header('host', 'localhost')}"
    if method.anonymous and not token:
        return SlackCall(store, method.name, args, {"id": "", "is_bot": 0}, "", None, team, base)
    me, scopes = identity(store, token)
    return SlackCall(store, method.name, args, me, token, scopes, team, base)


# -- the bytes of files


def _receive(request: Request, store: Store, file: str) -> Response:
    """The second step of an upload: raw bytes, or one part of a form."""
    row = store.one("SELECT * FROM files WHERE id = ? AND ready = 0", file)
    if row is None or request.method != "POST":
        return Response(404, b"not found", {"Content-Type": "text/plain"})
    content = request.body
    if request.content_type == "multipart/form-data":
        try:
            _, files = arguments(request)
        except SlackError:
            return Response(400, b"bad form", {"Content-Type": "text/plain"})
        content = next(iter(files.values()), ("", b""))[1]
    if len(content) != row["size"] or len(content) > MAX_BYTES:
        text = f"expected {row['size']} bytes, got {len(content)}".encode()
        return Response(400, text, {"Content-Type": "text/plain"})
    with store.transaction():
        store.update("files", {"id": file}, content=content)
    return Response(200, f"OK - {len(content)}".encode(), {"Content-Type": "text/plain"})


def _download(request: Request, store: Store, rest: str) -> Response:
    """`url_private`: only with a token that may see the file, as files.slack.com has it."""
    file = rest.partition("/")[0].rpartition("-")[2]
    try:
        me, scopes = identity(store, token_of(request, {}))
    except SlackError:
        return Response(302, b"", {"Location": "/?redir=sign-in"})
    row = store.one("SELECT * FROM files WHERE id = ? AND ready = 1", file)
    call = SlackCall(store, "files.info", {}, me, "", scopes, _team(store))
    if row is None or not may_see(call, row):
        return Response(404, b"not found", {"Content-Type": "text/plain"})
    return Response(200, bytes(row["content"] or b""), {"Content-Type": row["mimetype"]})


def _exported(request: Request, store: Store, rest: str) -> Response:
    """What `slackLists.download.get` pointed to: for the one who asked for it."""
    try:
        me, _ = identity(store, token_of(request, {}))
    except SlackError:
        return Response(302, b"", {"Location": "/?redir=sign-in"})
    row = store.one("SELECT * FROM list_downloads WHERE id = ? AND user = ?", rest.partition("/")[0], me["id"])
    if row is None:
        return Response(404, b"not found", {"Content-Type": "text/plain"})
    return Response(200, row["content"].encode(), {"Content-Type": "text/csv"})
