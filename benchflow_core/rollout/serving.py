"""An ASGI application of a driver's on this host's loopback: HTTP/1.1, as much of it as a program in a box needs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from benchflow_core.contracts.sandboxes import HostEndpoint
from benchflow_core.errors import InfrastructureError

__all__ = ["App", "served"]

App = Callable[..., Awaitable[None]]
Message = dict[str, Any]
_HEAD: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_LOOK: Final = 0.25
"""Seconds between looks whether the client is still there, while an application waits for its end."""
_NUMBER: Final = re.compile(rb"[0-9]{1,18}")
_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,15}")
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@asynccontextmanager
async def served(app: App, failed: Callable[[str], None]) -> AsyncIterator[HostEndpoint]:
    """Serves while it is open. `failed` hears what the application raises; its client gets a 500."""
    tasks: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await _Connection(app, reader, writer, failed).run()
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: Python 3.11 prints a traceback for one of the server's that is cancelled.
        task = asyncio.create_task(answer(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async with _lifespan(app):
        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=_HEAD)
        try:
            yield HostEndpoint(*server.sockets[0].getsockname()[:2])
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _lifespan(app: App) -> AsyncIterator[None]:
    """Start-up and shut-down, for an application that knows them; one that does not ends at once or raises."""
    told: asyncio.Queue[Message] = asyncio.Queue()
    said: asyncio.Queue[Message] = asyncio.Queue()
    life = asyncio.ensure_future(app({"type": "lifespan", "asgi": {"version": "3.0"}}, told.get, said.put))

    async def ask(what: str) -> Message | None:
        await told.put({"type": f"lifespan.{what}"})
        heard = asyncio.ensure_future(said.get())
        try:
            await asyncio.wait({life, heard}, return_when=asyncio.FIRST_COMPLETED)
            return heard.result() if heard.done() else None
        finally:
            heard.cancel()

    try:
        answer = await ask("startup")
        if answer and answer["type"] == "lifespan.startup.failed":
            raise InfrastructureError(f"the driver's application did not start: {answer.get('message') or 'no reason'}")
        yield
        if not life.done():
            await ask("shutdown")
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


class _Refused(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


class _Connection:
    """Requests one after the other."""

    def __init__(
        self, app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, failed: Callable[[str], None]
    ) -> None:
        self._app, self._reader, self._writer, self._failed = app, reader, writer, failed

    async def run(self) -> None:
        try:
            while True:
                try:
                    head = await self._reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    raise _Refused(431) from None
                exchange = _Exchange(self._reader, self._writer, _scope(head))
                try:
                    await self._app(exchange.scope, exchange.receive, exchange.send)
                except (OSError, _Refused, asyncio.IncompleteReadError):
                    raise
                except Exception as error:
                    self._failed(f"{type(error).__name__}: {error}")
                if not exchange.started:
                    raise _Refused(500)
                if not (exchange.ended and exchange.reusable):
                    return
        except _Refused as refused:
            self._writer.write(_status(refused.status) + b"content-length: 0\r\nconnection: close\r\n\r\n")
            await self._writer.drain()


class _Exchange:
    """One request and its answer, as the application sees them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, scope: Message) -> None:
        self.scope = scope
        self.started = self.ended = False
        self._reader, self._writer = reader, writer
        headers = dict(scope["headers"])
        self._chunked_in = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
        length = headers.get(b"content-length", b"0")
        if not _NUMBER.fullmatch(length) or (b"transfer-encoding" in headers and not self._chunked_in):
            raise _Refused(400)
        self._left = 0 if self._chunked_in else int(length)
        self._body_over = not self._chunked_in and self._left == 0
        self._heard = False
        """The application was given the whole body."""
        self._wants_go_ahead = headers.get(b"expect", b"").lower() == b"100-continue"
        self._keep = scope["http_version"] == "1.1" and headers.get(b"connection", b"").lower() != b"close"
        self._answer: Message = {}
        self._chunked_out = False

    @property
    def reusable(self) -> bool:
        return self._keep and self._body_over

    async def receive(self) -> Message:
        if self._heard:
            while not (self.ended or self._reader.at_eof() or self._writer.is_closing()):
                await asyncio.sleep(_LOOK)
            return {"type": "http.disconnect"}
        data = await self._piece()
        self._heard = self._body_over
        return {"type": "http.request", "body": data, "more_body": not self._body_over}

    async def _piece(self) -> bytes:
        if self._body_over:
            return b""
        if self._wants_go_ahead:
            self._wants_go_ahead = False
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._chunked_in and self._left == 0:
            await self._next_chunk()
            if self._body_over:
                return b""
        data = await self._reader.read(min(self._left, _PIECE))
        if not data:
            raise asyncio.IncompleteReadError(b"", self._left)
        self._left -= len(data)
        if self._left == 0:
            if self._chunked_in:
                await self._reader.readexactly(2)
            else:
                self._body_over = True
        return data

    async def _next_chunk(self) -> None:
        size = (await self._reader.readuntil(b"\r\n")).split(b";")[0].strip()
        if not _SIZE.fullmatch(size):
            raise _Refused(400)
        self._left = int(size, 16)
        if self._left == 0:
            self._body_over = True
            while await self._reader.readuntil(b"\r\n") != b"\r\n":
                continue  # trailers say nothing we need

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._answer = message
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if not self.started:
            self._writer.write(self._head(len(body), more))
            self.started = True
        if not self._silent():
            self._writer.write(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked_out and body else body)
            if self._chunked_out and not more:
                self._writer.write(b"0\r\n\r\n")
        self.ended = not more
        await self._writer.drain()

    def _silent(self) -> bool:
        return self.scope["method"] == "HEAD" or self._answer["status"] in (204, 304)

    def _head(self, size: int, more: bool) -> bytes:
        headers = [(bytes(name).lower(), bytes(value)) for name, value in self._answer.get("headers", ())]
        if not any(name == b"content-length" for name, _ in headers) and not self._silent():
            if not more:
                headers.append((b"content-length", str(size).encode()))
            elif self.scope["http_version"] == "1.1":
                self._chunked_out = True
                headers.append((b"transfer-encoding", b"chunked"))
            else:
                self._keep = False
        if not self.reusable:
            headers.append((b"connection", b"close"))
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        return _status(self._answer["status"]) + lines + b"\r\n"


def _status(code: int) -> bytes:
    phrase = HTTPStatus(code).phrase if code in HTTPStatus._value2member_map_ else ""
    return f"HTTP/1.1 {code} {phrase}\r\n".encode()


def _scope(head: bytes) -> Message:
    first, *lines = head[:-4].split(b"\r\n")
    method, _, rest = first.partition(b" ")
    target, _, version = rest.partition(b" ")
    if not _TOKEN.fullmatch(method) or version not in (b"HTTP/1.1", b"HTTP/1.0") or not target:
        raise _Refused(400)
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name):
            raise _Refused(400)
        headers.append((name.lower(), value.strip()))
    try:
        split = urlsplit(target.decode("ascii"))
    except ValueError:
        raise _Refused(400) from None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": version[-3:].decode(),
        "method": method.decode().upper(),
        "scheme": "http",
        "path": unquote(split.path),
        "raw_path": split.path.encode(),
        "query_string": split.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": None,
        "server": None,
    }
