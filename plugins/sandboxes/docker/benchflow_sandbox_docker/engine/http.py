"""As much HTTP/1.1 as an engine needs: one connection per request, streamed bodies, and connections taken over."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import InfrastructureError
from benchflow_sandbox_docker.engine.host import EngineAddress

__all__ = ["EngineAnswer", "EngineError", "Http", "Streams"]

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Body = bytes | AsyncIterator[bytes] | None
Query = Mapping[str, Any]

_LIMIT = 1 << 20
_CONNECT_SECONDS = 20.0


class EngineError(InfrastructureError):
    """The engine refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"The container engine refused ({status}): {message}", retryable=status >= 500)
        self.status, self.reason = status, message


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body.strip() else None


class Http:
    def __init__(self, address: EngineAddress) -> None:
        self.address = address
        self._tls = address.tls()

    async def call(
        self, method: str, path: str, query: Query | None = None, body: Any = None, headers: Mapping[str, str] = {}
    ) -> EngineAnswer:
        """A whole answer. Raises `EngineError` for one that is not a success."""
        async with self.opened(method, path, query, body, headers) as (status, found, reader):
            data = b"".join([part async for part in _body(found, reader)])
        return EngineAnswer(status, found, data)

    async def stream(
        self, method: str, path: str, query: Query | None = None, body: Any = None, headers: Mapping[str, str] = {}
    ) -> AsyncGenerator[bytes, None]:
        """The body of an answer as it comes."""
        async with self.opened(method, path, query, body, headers) as (_, found, reader):
            async for part in _body(found, reader):
                yield part

    @contextlib.asynccontextmanager
    async def opened(
        self, method: str, path: str, query: Query | None, body: Any, headers: Mapping[str, str]
    ) -> AsyncIterator[tuple[int, Mapping[str, str], asyncio.StreamReader]]:
        reader, writer = await self._connect()
        sending: asyncio.Task[None] | None = None
        try:
            payload = _payload(body)
            _head(writer, method, path, query, payload, headers)
            sending = asyncio.ensure_future(_send(writer, payload))
            try:
                status, found = await _read_head(reader)
            except (OSError, asyncio.IncompleteReadError) as error:
                raise InfrastructureError(f"The container engine at {self.address} hung up.") from error
            if status >= 300:
                raise EngineError(status, _message(b"".join([part async for part in _body(found, reader)])))
            yield status, found, reader
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            writer.close()

    async def take_over(self, path: str, query: Query | None = None, body: Any = None) -> Streams:
        """A connection that belongs to us from the answer on: raw bytes both ways."""
        reader, writer = await self._connect()
        try:
            payload = _payload(body)
            _head(writer, "POST", path, query, payload, {"Upgrade": "tcp", "Connection": "Upgrade"})
            await _send(writer, payload)
            status, found = await _read_head(reader)
            if status not in (101, 200):
                raise EngineError(status, _message(b"".join([part async for part in _body(found, reader)])))
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def _connect(self) -> Streams:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                if self.address.path:
                    return await asyncio.open_unix_connection(self.address.path, limit=_LIMIT)
                return await asyncio.open_connection(self.address.host, self.address.port, ssl=self._tls, limit=_LIMIT)
        except (OSError, TimeoutError) as error:
            raise InfrastructureError(
                f"No container engine answers at {self.address} (from {self.address.source}): {error}.",
                remedy="Start it, or point DOCKER_HOST at another.",
            ) from error


def _payload(body: Any) -> Body:
    if body is None or isinstance(body, bytes) or hasattr(body, "__aiter__"):
        return body  # type: ignore[no-any-return]
    return json.dumps(body).encode()


def _head(
    writer: asyncio.StreamWriter,
    method: str,
    path: str,
    query: Query | None,
    body: Body,
    headers: Mapping[str, str],
) -> None:
    target = quote(path, safe="/:@%")
    if query:
        target += "?" + urlencode({key: _text(value) for key, value in query.items() if value is not None})
    lines = {"Host": "engine", "Connection": "close", **headers}
    if isinstance(body, bytes):
        lines["Content-Length"] = str(len(body))
        lines.setdefault("Content-Type", "application/json")
    elif body is not None:
        lines["Transfer-Encoding"] = "chunked"
        lines.setdefault("Content-Type", "application/x-tar")
    elif method != "GET":
        lines["Content-Length"] = "0"
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"{method} {target} HTTP/1.1\r\n{text}\r\n".encode())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return value if isinstance(value, str) else json.dumps(value)


async def _send(writer: asyncio.StreamWriter, body: Body) -> None:
    # An engine that refuses answers before it has read everything: the answer matters, not the broken pipe.
    with contextlib.suppress(ConnectionError):
        if isinstance(body, bytes):
            writer.write(body)
        elif body is not None:
            async for part in body:
                if part:
                    writer.write(b"%x\r\n" % len(part) + part + b"\r\n")
                    await writer.drain()
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, Mapping[str, str]]:
    while True:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ", 2)[1])
        if status != 100:
            break
    pairs = (line.partition(":") for line in lines[1:] if line)
    return status, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _body(headers: Mapping[str, str], reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            left = size
            while left:
                part = await reader.read(min(left, _LIMIT))
                if not part:
                    raise InfrastructureError("The container engine hung up in the middle of an answer.")
                left -= len(part)
                yield part
            await reader.readexactly(2)
        return
    left = int(headers["content-length"]) if "content-length" in headers else -1
    while left and (part := await reader.read(min(left, _LIMIT) if left > 0 else _LIMIT)):
        left -= len(part) if left > 0 else 0
        yield part


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"]).strip()
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()[:2000]
