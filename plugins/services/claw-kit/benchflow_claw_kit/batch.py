"""The `/batch` endpoint: HTTP requests inside a multipart/mixed body, answered the same way, in order."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from benchflow_claw_kit.errors import ApiError, not_found
from benchflow_claw_kit.http import Request, Response, split_target
from benchflow_claw_kit.parts import boundary_of, head_and_body, split_parts

if TYPE_CHECKING:
    from benchflow_claw_kit.dispatch import Dispatcher

__all__ = ["run"]

MARK = "batch_claw_6d1f0c"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def run(dispatcher: Dispatcher, request: Request) -> Response:
    if request.method != "POST":
        raise not_found("Not Found")
    if request.content_type != "multipart/mixed":
        raise ApiError(400, f"Failed to parse batch request, error: Invalid content type: {request.content_type}")
    parts = split_parts(request.body, boundary_of(request.header("content-type")))
    if not parts:
        raise ApiError(400, "Failed to parse batch request, error: 0 items in batch. ")
    if len(parts) > dispatcher.service.batch_limit:
        raise ApiError(400, f"The batch request must not contain more than {dispatcher.service.batch_limit} calls.")
    answers = [_answer(dispatcher, request, part) for part in parts]
    body = b"".join(b"--" + MARK.encode() + b"\r\n" + answer + b"\r\n" for answer in answers)
    closed = body + b"--" + MARK.encode() + b"--\r\n"
    return Response(200, closed, {"Content-Type": f"multipart/mixed; boundary={MARK}"})


def _answer(dispatcher: Dispatcher, outer: Request, part: bytes) -> bytes:
    headers, inner = head_and_body(part)
    response = _respond(dispatcher, outer, inner)
    lines = [f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    lines.append(f"Content-Length: {len(response.body)}")
    head = "Content-Type: application/http\r\n"
    if "content-id" in headers:
        head += f"Content-ID: <response-{headers['content-id'].strip('<>')}>\r\n"
    return (head + "\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace") + response.body


def _respond(dispatcher: Dispatcher, outer: Request, inner: bytes) -> Response:
    line, _, rest = inner.lstrip(b"\r\n").partition(b"\n")
    words = line.decode("latin-1").split()
    if len(words) < 2:
        error = ApiError(400, "Failed to parse batch request, error: Failed to parse request line.")
        return dispatcher.service.render_error(error, outer)
    headers, body = head_and_body(rest)
    if "authorization" not in headers and "authorization" in outer.headers:
        headers["authorization"] = outer.headers["authorization"]
    if "content-length" in headers and headers["content-length"].isdigit():
        body = body[: int(headers["content-length"])]
    path, query = split_target(words[1])
    request = Request(words[0].upper(), path, query, headers, body)
    if path.startswith(("/batch", "/upload/", "/resumable/")):
        return dispatcher.service.render_error(ApiError(400, "Nested batches and uploads are not allowed."), request)
    return dispatcher(request)
