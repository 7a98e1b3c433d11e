"""Passing one request on: the body as it came, the answer as it comes, and a copy for the record."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from benchflow_core.contracts import Exchange, ModelTarget, Usage

MAX_BODY = 64 * 1024 * 1024
REDIRECTING = {"base_url", "api_base", "api_key", "extra_headers", "extra_body", "headers", "proxy"}


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Reply:
    status: int
    streamed: bool
    body: bytes
    error: str | None = None


async def read_request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    length = int(headers.get("content-length") or 0)
    return method, path, headers, await reader.readexactly(min(length, MAX_BODY))


def chat_request(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    if not isinstance(request, dict) or not isinstance(request.get("model"), str):
        raise Refused(400, "the body names no model")
    if found := sorted(REDIRECTING & set(request)):
        raise Refused(400, f"{found[0]} may not be set by a client")
    return request


async def pass_on(target: ModelTarget, credential: str, body: bytes, writer: asyncio.StreamWriter) -> Reply:
    """Streams the provider's answer to the client as it comes. Redirects are not followed."""
    loop, parts = asyncio.get_running_loop(), []
    connection, answer, error = None, None, None
    try:
        connection, answer = await loop.run_in_executor(None, _ask, target, credential, body)
    except OSError as problem:
        send_error(writer, 502, "the provider cannot be reached")
        return Reply(502, False, b"", f"{type(problem).__name__}: {problem}")
    try:
        kept = ("content-type", "retry-after")
        headers = "".join(f"{name}: {answer.headers[name]}\r\n" for name in kept if answer.headers[name])
        writer.write(f"HTTP/1.1 {answer.status} Passed\r\n{headers}Connection: close\r\n\r\n".encode("latin-1"))
        while part := await loop.run_in_executor(None, answer.read1, 65536):
            parts.append(part)
            with contextlib.suppress(ConnectionError):
                writer.write(part)
                await writer.drain()
    except (OSError, http.client.HTTPException) as problem:
        error = f"{type(problem).__name__}: {problem}"
    finally:
        connection.close()
    streamed = (answer.headers["content-type"] or "").startswith("text/event-stream")
    return Reply(answer.status, streamed, b"".join(parts), error)


def _ask(target: ModelTarget, credential: str, body: bytes) -> tuple[Any, Any]:
    url = urlsplit(target.base_url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=600)
    headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
    connection.request("POST", f"{url.path.rstrip('/')}/chat/completions", body, headers)
    return connection, connection.getresponse()


def send_error(writer: asyncio.StreamWriter, status: int, message: str) -> None:
    body = json.dumps({"error": {"message": message, "type": "gateway"}}).encode()
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\nConnection: close\r\n"
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def recorded(
    key_id: str, started_at: float, duration: float, path: str, request: Mapping[str, Any], reply: Reply
) -> Exchange:
    chunks = _chunks(reply)
    usage: dict[str, Any] = next((c["usage"] for c in reversed(chunks) if isinstance(c.get("usage"), dict)), {})
    return Exchange(
        key_id=key_id,
        started_at=started_at,
        duration=duration,
        wire="chat",
        path=path,
        request=request,
        response={"chunks": chunks} if reply.streamed else (chunks[0] if chunks else None),
        status=reply.status,
        usage=Usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), requests=1, source="provider_response"),
        requested_model=request["model"],
        returned_model=next((c["model"] for c in chunks if c.get("model")), None),
        streamed=reply.streamed,
        error=reply.error,
    )


def _chunks(reply: Reply) -> list[dict[str, Any]]:
    """The JSON objects in an answer: one, or one per event of a stream."""
    lines = [reply.body]
    if reply.streamed:
        lines = [line[5:].strip() for line in reply.body.splitlines() if line.startswith(b"data:")]
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [item for item in found if isinstance(item, dict)]
