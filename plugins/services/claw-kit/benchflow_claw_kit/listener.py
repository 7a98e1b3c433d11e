"""An ASGI application on a socket: asyncio and h11, nothing else. uvicorn does the same, after 0.35 s of imports."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import h11

__all__ = ["serve"]

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]
CHUNK = 256 * 1024
MAX_HEAD = 128 * 1024
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
PATIENCE = 1.0
"""Seconds that requests under way may still take after a stop was asked for."""


def serve(app: App, listener: socket.socket) -> None:
    """Until SIGTERM or SIGINT, then in order: no new connection, requests finished, the application told."""
    asyncio.run(_serve(app, listener))


async def _serve(app: App, listener: socket.socket) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    busy: dict[asyncio.Task[None], _Exchange] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        exchange, task = _Exchange(app, reader, writer), asyncio.current_task()
        assert task is not None
        busy[task] = exchange
        try:
            await exchange.run()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            del busy[task]
            writer.close()

    server = await asyncio.start_server(connected, sock=listener, limit=CHUNK, backlog=512)
    await stop.wait()
    server.close()
    answering = [task for task, exchange in busy.items() if exchange.answering]
    if answering:
        await asyncio.wait(answering, timeout=PATIENCE)
    for task in list(busy):
        task.cancel()
    await _tell_the_end(app)


async def _tell_the_end(app: App) -> None:
    async def receive() -> Message:
        return {"type": "lifespan.shutdown"}

    async def send(message: Message) -> None:
        return None

    await app({"type": "lifespan"}, receive, send)


class _Exchange:
    """One connection: requests one after the other."""

    def __init__(self, app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.app = app
        self.reader = reader
        self.writer = writer
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self.answering = False
        self.head = b""
        """Of an answer, until its first piece is known: both are one packet."""
        self.broken: int | None = None
        """The status for a body that cannot be read, e.g. a wrong chunk."""

    async def run(self) -> None:
        while True:
            try:
                event = await self._event()
            except h11.RemoteProtocolError as error:
                await self._refuse(error.error_status_hint)
                return
            if not isinstance(event, h11.Request):
                return
            self.answering = True
            try:
                await self.app(_scope(event), self._receive, self._send)
            except ConnectionError:  # nobody waits for the answer any more
                return
            except Exception:
                traceback.print_exc(file=sys.stderr)
                return
            self.answering = False
            if self.broken is not None:
                await self._refuse(self.broken)
                return
            if self.http.our_state is not h11.DONE or self.http.their_state is not h11.DONE:
                return
            self.http.start_next_cycle()

    async def _event(self) -> Any:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[]))
            self.http.receive_data(await self.reader.read(CHUNK))
        return event

    async def _receive(self) -> Message:
        try:
            event = await self._event()
        except h11.RemoteProtocolError as error:
            self.broken = error.error_status_hint
            return {"type": "http.disconnect"}
        if isinstance(event, h11.Data):
            return {"type": "http.request", "body": bytes(event.data), "more_body": True}
        if isinstance(event, h11.EndOfMessage):
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], (b"date", _now())]
            self.head = self.http.send(h11.Response(status_code=message["status"], headers=headers)) or b""
            return
        data, self.head = self.head, b""
        if message.get("body"):
            data += self.http.send(h11.Data(data=message["body"])) or b""
        if not message.get("more_body"):
            data += self.http.send(h11.EndOfMessage()) or b""
        self.writer.write(data)
        await self.writer.drain()

    async def _refuse(self, status: int) -> None:
        if self.http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._write(
                h11.Response(status_code=status, headers=[(b"content-length", b"0"), (b"connection", b"close")])
            )
            self._write(h11.EndOfMessage())
            await self.writer.drain()

    def _write(self, event: Any) -> None:
        data = self.http.send(event)
        if data:
            self.writer.write(data)


def _now() -> bytes:
    """As email.utils has it, whose import is a tenth of a start."""
    at = time.gmtime()
    month = _MONTHS[at.tm_mon - 1]
    return f"{_DAYS[at.tm_wday]}, {at.tm_mday:02d} {month} {at.tm_year} {time.strftime('%H:%M:%S', at)} GMT".encode()


def _scope(request: h11.Request) -> Message:
    path, _, query = bytes(request.target).partition(b"?")
    if not path.startswith(b"/"):
        path = b"/" + path.partition(b"://")[2].partition(b"/")[2]
    return {
        "type": "http",
        "method": request.method.decode("ascii").upper(),
        "path": path.decode("latin-1"),
        "raw_path": path,
        "query_string": query,
        "headers": [(bytes(name), bytes(value)) for name, value in request.headers],
    }
