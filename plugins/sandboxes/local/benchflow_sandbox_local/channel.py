"""Requests and answers, with descriptors, over a Unix socket on the asyncio side."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from benchflow_core.errors import SandboxLost
from benchflow_sandbox_local.helper import transfer, wire

__all__ = ["Channel", "fd_of"]


class Channel:
    """One end of a connection to the helper or to a box."""

    def __init__(
        self, sock: socket.socket, who: str, on_event: Callable[[wire.Message, list[int]], None] | None = None
    ) -> None:
        sock.setblocking(False)
        self._sock, self._who, self.on_event = sock, who, on_event
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[tuple[wire.Message, list[int]]]] = {}
        self._next = 0
        self._buffer = bytearray()
        self._fds: list[int] = []
        self._sending = asyncio.Lock()
        self.closed = asyncio.Event()
        self._loop.add_reader(sock, self._readable)

    def number(self) -> int:
        self._next += 1
        return self._next

    async def call(self, op: str, fds: Sequence[int] = (), **arguments: Any) -> wire.Message:
        """Ask and wait for the answer. Descriptors that come with it are closed."""
        answer, received = await self.call_fds(op, fds, **arguments)
        wire.close_fds(received)
        return answer

    async def call_fds(
        self, op: str, fds: Sequence[int] = (), *, number: int | None = None, **arguments: Any
    ) -> tuple[wire.Message, list[int]]:
        number = self.number() if number is None else number
        future: asyncio.Future[tuple[wire.Message, list[int]]] = self._loop.create_future()
        self._waiting[number] = future
        try:
            await self._send({"op": op, "id": number, **arguments}, fds)
            answer, received = await future
        except asyncio.CancelledError:
            # The answer may still come, with descriptors nobody waits for.
            if future.done() and not future.cancelled() and future.exception() is None:
                wire.close_fds(future.result()[1])
            raise
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            wire.close_fds(received)
            raise transfer.revive(answer["error"])
        return answer, received

    async def _send(self, message: wire.Message, fds: Sequence[int]) -> None:
        data = wire.encode(message, fds)
        async with self._sending:
            if self.closed.is_set():
                raise SandboxLost(f"{self._who} is gone.")
            try:
                sent = await self._send_first(data, fds)
                if sent < len(data):
                    # A frame must not be cut short: whoever cancels us waits for its end.
                    rest = asyncio.ensure_future(self._loop.sock_sendall(self._sock, data[sent:]))
                    try:
                        await asyncio.shield(rest)
                    except asyncio.CancelledError:
                        await rest
                        raise
            except (BrokenPipeError, ConnectionError, OSError) as error:
                self._lost()
                raise SandboxLost(f"{self._who} is gone.") from error

    async def _send_first(self, data: bytes, fds: Sequence[int]) -> int:
        end = self._loop.time() + wire.PATIENCE
        while True:
            try:
                return self._sock.sendmsg([data], wire.ancillary(fds))
            except BlockingIOError:
                ready: asyncio.Future[None] = self._loop.create_future()
                self._loop.add_writer(self._sock, _set, ready)
                try:
                    await ready
                finally:
                    self._loop.remove_writer(self._sock)
            except OSError as error:
                if not wire.must_wait(error) or self._loop.time() > end:
                    raise
                await asyncio.sleep(wire.PAUSE)

    def _readable(self) -> None:
        try:
            data, fds = wire.recv_part(self._sock, 262144)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self._lost()
            return
        self._buffer += data
        self._fds += fds
        while len(self._buffer) >= wire.HEADER.size:
            length, count = wire.HEADER.unpack_from(self._buffer)
            end = wire.HEADER.size + length
            if length > wire.MAX_MESSAGE:
                self._lost()
                return
            if len(self._buffer) < end:
                return
            try:
                message = json.loads(self._buffer[wire.HEADER.size : end])
            except ValueError:
                self._lost()
                return
            del self._buffer[:end]
            received, self._fds = self._fds[:count], self._fds[count:]
            self._dispatch(message, received)

    def _dispatch(self, message: wire.Message, fds: list[int]) -> None:
        future = self._waiting.get(message.get("id", -1))
        if future is not None and not future.done():
            future.set_result((message, fds))
            return
        if "event" in message and self.on_event:
            self.on_event(message, fds)
        else:
            wire.close_fds(fds)

    def _lost(self) -> None:
        if self.closed.is_set():
            return
        self.close()
        if self.on_event:
            self.on_event({"event": "lost"}, [])

    def close(self) -> None:
        if self.closed.is_set():
            return
        self.closed.set()
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        wire.close_fds(self._fds)
        self._fds = []
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SandboxLost(f"{self._who} is gone."))


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def fd_of(fds: Sequence[int]) -> int:
    """The one descriptor an answer must carry."""
    if len(fds) != 1:
        wire.close_fds(fds)
        raise SandboxLost("The box answered out of turn.")
    return os.dup(fds[0]) if fds[0] < 3 else fds[0]
