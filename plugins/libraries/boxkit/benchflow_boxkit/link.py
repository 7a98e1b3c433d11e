"""Our end of the lasting stream to a supervisor: it connects again when a connection breaks, and loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from benchflow_boxkit.inside import link
from benchflow_core.contracts.sandboxes import ByteStream
from benchflow_core.errors import BenchflowError, SandboxLost, TransportError

__all__ = ["Connect", "Link"]

Connect = Callable[[], Awaitable[ByteStream]]
"""Runs `package.ATTACH` in the box by the vendor's means and gives its standard streams. Raises `SandboxLost` where the
box is gone for good; any other failure is tried again."""

_NOISE: Final = 1 << 20
_PIECE: Final = 1 << 16
_BATCH: Final = 1 << 17
_TOGETHER: Final = 0.002
"""Seconds for which more may come: what follows at once goes along, where a vendor takes a request for each write."""


class Link:
    def __init__(
        self, connect: Connect, who: str, *, again_seconds: float = 60.0, greeting_seconds: float = 45.0
    ) -> None:
        self._connect, self._who, self._again_seconds = connect, who, again_seconds
        self._greeting_seconds = greeting_seconds
        self._kept, self._arriving = link.UnconfirmedData(), link.Incoming()
        self._queue = bytearray()
        self._confirmation = b""
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._stream: ByteStream | None = None
        self._sender: asyncio.Task[None] | None = None
        self._closing = False
        self.connections = 0
        """How often it had to connect; 1 where nothing ever broke."""
        self.failure: str = ""

    async def open(self) -> None:
        """The first connection: its failure is the caller's."""
        self._stream = await self._greeted()

    def send(self, data: bytes) -> None:
        self._kept.add(data)
        self._queue += data
        self._wake.set()

    async def drain(self) -> None:
        """Returns when no more waits than a connection takes at once."""
        while len(self._queue) > _BATCH and not self._closing:
            self._room.clear()
            await self._room.wait()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The stream from the box, until it is closed or cannot be had again."""
        while not self._closing:
            stream = self._stream
            assert stream is not None
            self._sender = asyncio.ensure_future(self._send(stream))
            try:
                data = b""  # at first what came along with the greeting
                while True:
                    for kind, body in self._arriving.feed(data):
                        if kind == link.PIECE:
                            yield body
                        elif kind == link.CONFIRM:
                            self._kept.confirm(link.COUNT.unpack(body)[0])
                    if confirmation := self._arriving.due():
                        self._confirmation = confirmation
                        self._wake.set()
                    if not (data := await stream.read(1 << 18)):
                        break
            except (BenchflowError, OSError, link.ProtocolError, ValueError) as error:
                self.failure = str(error)
            finally:
                await self._end_sender()
            if self._closing or not await self._again():
                return

    async def _send(self, stream: ByteStream) -> None:
        with contextlib.suppress(BenchflowError, OSError):
            while True:
                await self._wake.wait()
                await asyncio.sleep(_TOGETHER)
                self._wake.clear()
                while self._queue or self._confirmation:
                    batch, self._confirmation = bytearray(self._confirmation), b""
                    while self._queue and len(batch) < _BATCH:
                        start = self._kept.end - len(self._queue)
                        batch += link.packet(link.PIECE, bytes(self._queue[:_PIECE]), start)
                        del self._queue[:_PIECE]
                    self._room.set()
                    await stream.write(bytes(batch))

    async def _end_sender(self) -> None:
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
            self._sender = None

    async def _again(self) -> bool:
        """Reconnect with jittered exponential back-off; return False when the box is gone."""
        await self._drop()
        loop, pause = asyncio.get_running_loop(), 0.05
        deadline = loop.time() + self._again_seconds
        while not self._closing:
            try:
                self._stream = await self._greeted()
                return True
            except SandboxLost as error:
                self.failure = error.message
                return False
            except (BenchflowError, OSError, link.ProtocolError, TimeoutError, ValueError) as error:
                self.failure = str(error)
            if loop.time() + pause > deadline:
                return False
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, 5.0)
        return False

    async def _greeted(self) -> ByteStream:
        stream = await self._connect()
        try:
            async with asyncio.timeout(self._greeting_seconds):
                await self._greet(stream)
        except BaseException as error:
            with contextlib.suppress(Exception):
                await stream.close()
            if isinstance(error, TimeoutError):
                late = f"{self._who}: no supervisor answers within {self._greeting_seconds:g} s."
                raise TransportError(late) from error
            raise
        return stream

    async def _greet(self, stream: ByteStream) -> None:
        noise = b""
        while link.MARK not in noise:
            data = await stream.read()
            noise += data
            if not data or len(noise) > _NOISE:
                told = noise.decode(errors="replace").strip()[-300:]
                raise TransportError(f"{self._who}: no supervisor answers: {told or 'the connection was closed'}.")
        self._arriving.renew()
        self._confirmation = b""  # the greeting confirms
        rest = noise.partition(link.MARK)[2]
        await stream.write(link.greeting({"received": self._arriving.received}))
        while True:
            for kind, body in self._arriving.feed(rest):
                if kind != link.GREET:
                    raise link.ProtocolError("a connection begins with a greeting")
                count = int(json.loads(body)["received"])
                self._kept.confirm(count)
                self._queue = bytearray(b"".join(self._kept.since(count)))
                self._wake.set()
                self.connections += 1
                return
            rest = await stream.read()
            if not rest:
                raise TransportError(f"{self._who}: the connection was closed before it began.")

    async def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            with contextlib.suppress(Exception):
                await stream.close()

    async def close(self) -> None:
        self._closing = True
        self._room.set()
        await self._end_sender()
        await self._drop()
