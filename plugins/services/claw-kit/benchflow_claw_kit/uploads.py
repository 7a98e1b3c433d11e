"""Media uploads: simple, multipart and resumable. Unfinished ones are in the database, as all state is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from benchflow_claw_kit.errors import ApiError, not_found
from benchflow_claw_kit.http import Request, Response
from benchflow_claw_kit.parts import boundary_of, head_and_body, split_parts

if TYPE_CHECKING:
    from benchflow_claw_kit.api import Method
    from benchflow_claw_kit.dispatch import Dispatcher

__all__ = ["run"]

_RANGE = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15}|\*)")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def run(dispatcher: Dispatcher, request: Request) -> Response:
    path = "/" + request.path.split("/upload/", 1)[1]
    target = Request(request.method, path, request.query, request.headers, request.body)
    session = request.first("upload_id")
    if session is not None:
        return _continue(dispatcher, request, session)
    method, _ = dispatcher.find(target)
    if not method.upload:
        raise not_found("Not Found")
    how = request.first("uploadType") or request.first("upload_protocol") or request.header("x-goog-upload-protocol")
    if how == "resumable":
        return _begin(dispatcher, request, target, method)
    if how == "multipart":
        return _multipart(dispatcher, target, method)
    if how in ("media", "raw", ""):
        _limit(dispatcher, method, len(request.body))
        media, target.body = request.body, b""
        return dispatcher.call(target, media, request.header("content-type"))
    raise ApiError(400, f"Invalid upload type: {how}", "invalidParameter", location="uploadType")


def _limit(dispatcher: Dispatcher, method: Method, size: int) -> None:
    if method.max_upload and size > method.max_upload:
        raise dispatcher.service.too_large


def _multipart(dispatcher: Dispatcher, target: Request, method: Method) -> Response:
    if not target.content_type.startswith("multipart/"):
        raise ApiError(400, "Multipart must have two parts.", "badContent")
    parts = split_parts(target.body, boundary_of(target.header("content-type")))
    if len(parts) != 2:
        raise ApiError(400, "Multipart must have two parts.", "badContent")
    _, target.body = head_and_body(parts[0])
    headers, media = head_and_body(parts[1])
    if headers.get("content-transfer-encoding", "").lower() == "base64":
        from benchflow_claw_kit.contract import decode_base64url

        media = decode_base64url(media.decode("latin-1")) or media
    _limit(dispatcher, method, len(media))
    return dispatcher.call(target, media, headers.get("content-type", ""))


def _begin(dispatcher: Dispatcher, request: Request, target: Request, method: Method) -> Response:
    size = request.header("x-upload-content-length")
    if size.isdigit():
        _limit(dispatcher, method, int(size))
    dispatcher.service.identify(request, dispatcher.store, dispatcher.require_auth)
    store = dispatcher.store
    with store.transaction():
        session = store.new_id("upload", 54, _ALPHABET)
        store.insert(
            "_uploads",
            id=session,
            verb=request.method,
            path=target.path,
            query=target.query,
            headers={name: value for name, value in request.headers.items() if name in ("authorization", "if-match")},
            metadata=request.body,
            media_type=request.header("x-upload-content-type"),
            total=int(size) if size.isdigit() else None,
            data=b"",
        )
    flat = [(name, value) for name, values in request.query.items() for value in values]
    scheme = "http"
    place = (
        f"{scheme}://{request.header('host', 'localhost')}{request.path}?{urlencode([*flat, ('upload_id', session)])}"
    )
    return Response(200, b"", {"Location": place, "X-GUploader-UploadID": session, "Content-Type": "text/plain"})


def _continue(dispatcher: Dispatcher, request: Request, session: str) -> Response:
    store = dispatcher.store
    row = store.one("SELECT * FROM _uploads WHERE id = ?", session)
    if row is None:
        raise not_found("Upload session not found.")
    if request.method == "DELETE":
        with store.transaction():
            store.delete("_uploads", id=session)
        return Response(499, b"")
    if row["answer"] is not None:
        return Response(200, row["answer"], {"Content-Type": "application/json; charset=UTF-8"})
    data, complete = _received(request, row["data"], row["total"])
    method, _ = dispatcher.find(Request(row["verb"], row["path"]))
    _limit(dispatcher, method, len(data))
    if not complete:
        with store.transaction():
            store.update("_uploads", {"id": session}, data=data)
        return Response(308, b"", {"Range": f"bytes=0-{len(data) - 1}"} if data else {})
    headers = {"content-type": "application/json", **json.loads(row["headers"])}
    target = Request(row["verb"], row["path"], json.loads(row["query"]), headers, row["metadata"])
    response = dispatcher.call(target, data, row["media_type"] or request.header("content-type"))
    with store.transaction():
        store.update("_uploads", {"id": session}, data=b"", answer=response.body if response.status < 300 else None)
    return response


def _received(request: Request, have: bytes, total: int | None) -> tuple[bytes, bool]:
    """All bytes so far, and whether these are all there will be."""
    text = request.header("content-range")
    if not text:
        return request.body, True
    found = _RANGE.fullmatch(text)
    if not found:
        raise ApiError(400, f"Failed to parse Content-Range header: {text}", "badRequest")
    first, last, size = found.groups()
    total = int(size) if size != "*" else total
    if first is not None:
        start, end = int(first), int(last)
        if end - start + 1 != len(request.body):
            raise ApiError(400, "Content-Range does not match the length of the body.", "badRequest")
        if start > len(have):
            raise ApiError(
                503, "Invalid request. The number of bytes uploaded does not match the range.", "backendError"
            )
        have = have[:start] + request.body
    return have, total is not None and len(have) == total and (size != "*" or first is None)
