"""The connection to a box's first process: calls, events and streams over the engine's attach stream."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import Callable
from typing import Any, Final

from benchflow_core.errors import SandboxLost
from benchflow_sandbox_docker.engine.http import Streams
from benchflow_sandbox_docker.inside import wire
from benchflow_sandbox_docker.streams import Inbound, Outbound, Reader

__all__ = ["Channel"]

_ENGINE_FRAME: Final = struct.Struct(">BxxxI")
_STDOUT: Final = 1
_LOG: Final = 1 << 16


class Channel:
    def __init__(self, streams: Streams, who: str) -> None:
        self._reader, self._writer = streams
        self._who = who
        self._next = 4
        self._waiting: dict[int, asyncio.Future[wire.Message]] = {}
        self.readers: dict[int, Reader] = {}
        self.writers: dict[int, Outbound] = {}
        self.on_event: Callable[[wire.Message], None] = lambda _: None
        self.on_lost: list[Callable[[], None]] = []
        self.log = bytearray()
        """What the first process printed: nothing, unless it failed."""
        self.lost = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    def number(self) -> int:
        """A new one, with three more behind it for streams."""
        self._next += 4
        return self._next

    async def call(self, op: str, number: int | None = None, **arguments: Any) -> wire.Message:
        number = self.number() if number is None else number
        future: asyncio.Future[wire.Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self.send(wire.message(wire.CALL, number, {"op": op, **arguments}))
            await self.drain()
            answer = await future
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise wire.revive(answer["error"])
        return answer

    def send(self, data: bytes) -> None:
        if self.lost.is_set():
            raise SandboxLost(f"{self._who} is gone.")
        self._writer.write(data)

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError as error:
            self._lose()
            raise SandboxLost(f"{self._who} is gone.") from error

    def reader(self, number: int) -> Inbound:
        self.readers[number] = found = Inbound(number, self.send_if_there)
        return found

    def writer(self, number: int) -> Outbound:
        self.writers[number] = found = Outbound(number, self.send, lambda: asyncio.ensure_future(self.drain()))
        return found

    def send_if_there(self, data: bytes) -> None:
        if not self.lost.is_set():
            self._writer.write(data)

    def forget(self, *numbers: int) -> None:
        for number in numbers:
            self.readers.pop(number, None)
            self.writers.pop(number, None)

    async def _run(self) -> None:
        parser, buffer = wire.Parser(), bytearray()
        with contextlib.suppress(OSError, wire.Violation, ValueError):
            while data := await self._reader.read(1 << 18):
                buffer += data
                at = 0
                while len(buffer) - at >= _ENGINE_FRAME.size:
                    kind, length = _ENGINE_FRAME.unpack_from(buffer, at)
                    end = at + _ENGINE_FRAME.size + length
                    if len(buffer) < end:
                        break
                    body = bytes(memoryview(buffer)[at + _ENGINE_FRAME.size : end])
                    at = end
                    if kind == _STDOUT:
                        for found in parser.feed(body):
                            self._frame(*found)
                    else:
                        self.log = (self.log + body)[-_LOG:]
                del buffer[:at]
        self._lose()

    def _frame(self, kind: int, number: int, body: bytes) -> None:
        if kind == wire.DATA:
            if reader := self.readers.get(number):
                reader.data(body)
        elif kind == wire.ANSWER:
            future = self._waiting.get(number)
            if future is not None and not future.done():
                future.set_result(json.loads(body))
        elif kind == wire.EVENT:
            self.on_event(json.loads(body))
        elif kind == wire.END:
            if reader := self.readers.pop(number, None):
                reader.end()
        elif kind == wire.CREDIT:
            if writer := self.writers.get(number):
                writer.give(wire.CREDIT_BODY.unpack(body)[0])
        elif kind == wire.CLOSE and (writer := self.writers.pop(number, None)):
            writer.fail()

    def _lose(self) -> None:
        if self.lost.is_set():
            return
        self.lost.set()
        self._writer.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SandboxLost(f"{self._who} is gone.", details={"log": self.tail()}))
        for reader in list(self.readers.values()):
            reader.end()
        for writer in list(self.writers.values()):
            writer.fail()
        for told in self.on_lost:
            told()

    def tail(self) -> str:
        return self.log.decode(errors="replace").strip()[-2000:]

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._lose()
