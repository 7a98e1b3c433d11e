"""Calls, events and streams to a box's supervisor, all over one line."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

from benchflow_boxkit.inside import wire
from benchflow_boxkit.socketline import SocketLine
from benchflow_boxkit.streams import Inbound, Outbound, Reader
from benchflow_core.errors import SandboxLost

__all__ = ["Channel", "Line"]


class Line(Protocol):
    """One ordered byte stream each way between the host and a supervisor."""

    @property
    def failure(self) -> str:
        """What is known about why it ended."""

    def send(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        """Returns when there is room for more, or when there will never be."""

    def pieces(self) -> AsyncIterator[bytes]:
        """The stream from the box, until it ends for good."""

    async def close(self) -> None: ...


class Channel:
    def __init__(self, line: Line, who: str) -> None:
        self.line, self._who = line, who
        self._next = 4
        self._waiting: dict[int, asyncio.Future[wire.Message]] = {}
        self.readers: dict[int, Reader] = {}
        self.writers: dict[int, Outbound] = {}
        self.on_event: Callable[[wire.Message], None] = lambda _: None
        self.on_lost: list[Callable[[], None]] = []
        self.lost = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    @property
    def passes_descriptors(self) -> bool:
        """Whether the supervisor shares this host's kernel, and large files need not pass through the line."""
        return isinstance(self.line, SocketLine)

    def number(self) -> int:
        """Return a new number, with three more behind it for streams."""
        self._next += 4
        return self._next

    async def call(
        self,
        op: str,
        number: int | None = None,
        *,
        data: bytes = b"",
        descriptors: Sequence[int] = (),
        **arguments: Any,
    ) -> wire.Message:
        """Ask, and return the answer.

        `data` goes along behind the message. `descriptors` take a line that passes them, which closes them.
        """
        number = self.number() if number is None else number
        future: asyncio.Future[wire.Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            if descriptors:
                assert isinstance(self.line, SocketLine)
                arguments["descriptors"] = len(descriptors)
                self.line.send(wire.message(wire.CALL, number, {"op": op, **arguments}), descriptors)
            else:
                self.send(wire.message(wire.CALL, number, {"op": op, **arguments}, data))
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
        self.line.send(data)

    async def drain(self) -> None:
        await self.line.drain()
        if self.lost.is_set():
            raise SandboxLost(f"{self._who} is gone.")

    def reader(self, number: int) -> Inbound:
        self.readers[number] = found = Inbound(number, self.send_if_there)
        return found

    def writer(self, number: int) -> Outbound:
        self.writers[number] = found = Outbound(number, self.send, lambda: asyncio.ensure_future(self.drain()))
        return found

    def send_if_there(self, data: bytes) -> None:
        if not self.lost.is_set():
            self.line.send(data)

    def forget(self, *numbers: int) -> None:
        for number in numbers:
            self.readers.pop(number, None)
            self.writers.pop(number, None)

    async def _run(self) -> None:
        parser = wire.Parser()
        with contextlib.suppress(wire.Violation, ValueError):
            async for piece in self.line.pieces():
                for found in parser.feed(piece):
                    self._frame(*found)
        self._lose()

    def _frame(self, kind: int, number: int, body: bytes) -> None:
        if kind == wire.DATA:
            if reader := self.readers.get(number):
                reader.data(body)
        elif kind == wire.ANSWER:
            future = self._waiting.get(number)
            if future is not None and not future.done():
                future.set_result(wire.parse(body))
        elif kind == wire.EVENT:
            self.on_event(wire.parse(body))
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
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SandboxLost(f"{self._who} is gone.", details={"reason": self.line.failure}))
        for reader in list(self.readers.values()):
            reader.end()
        for writer in list(self.writers.values()):
            writer.fail()
        for told in self.on_lost:
            told()

    async def close(self) -> None:
        await self.line.close()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._lose()
