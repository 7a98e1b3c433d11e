"""Many TCP connections over one byte stream: how the tunnel shows a host server inside a box.

This file is both ends. The host imports it; the box gets its text as `python -c`, so it uses only the standard library
of Python 3.8 and says nothing about the rest of BenchFlow.

A frame is: stream number, kind, length, payload. A side sends no more data on a stream than the other has granted, so
that one slow reader holds up neither memory nor its neighbours.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import sys
from collections.abc import Awaitable, Callable
from typing import Any

HEAD = struct.Struct("!IBI")
OPEN, DATA, END, RESET, GRANT, HELLO, PING, PONG = range(8)
WINDOW = 256 * 1024
FRAME = 32 * 1024
MAX_STREAMS = 512


class MuxViolation(Exception):
    """The other side breaks the protocol: nothing it says after that can be trusted."""


class Stream:
    """One connection. `read` and `write` as of a socket; both may be waited on at once."""

    def __init__(self, mux: Mux, number: int) -> None:
        self.number = number
        self._mux = mux
        self._buffer = bytearray()
        self._ended = self._sent_end = self._broken = False
        self._owed = 0
        self._credit = WINDOW
        self._changed = asyncio.Condition()

    async def read(self) -> bytes:
        """At least one byte, or none at the end. Raises `ConnectionError` when the other side gave up."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._buffer or self._ended or self._broken)
            if self._broken:
                raise ConnectionResetError
            data = bytes(self._buffer)
            self._buffer.clear()
        self._owed += len(data)
        if self._owed >= WINDOW // 2:
            owed, self._owed = self._owed, 0
            await self._mux.send(self.number, GRANT, owed.to_bytes(4, "big"))
        return data

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            async with self._changed:
                await self._changed.wait_for(lambda: self._credit > 0 or self._broken)
                if self._broken:
                    raise ConnectionResetError
                size = min(len(view), self._credit, FRAME)
                self._credit -= size
            await self._mux.send(self.number, DATA, bytes(view[:size]))
            view = view[size:]

    async def end(self) -> None:
        """Nothing more will be written."""
        if not self._sent_end and not self._broken:
            self._sent_end = True
            await self._mux.send(self.number, END)
            self._forget()

    async def reset(self) -> None:
        """Give up, both ways."""
        if not self._broken and not (self._ended and self._sent_end):
            await self.broke()
            await self._mux.send(self.number, RESET)

    # --- what the mux says -------------------------------------------------------------------------------------

    async def took(self, kind: int, payload: bytes) -> None:
        async with self._changed:
            if kind == DATA:
                if self._ended or len(self._buffer) + len(payload) > WINDOW:
                    raise MuxViolation("more data than was granted")
                self._buffer += payload
            elif kind == GRANT:
                self._credit = min(self._credit + int.from_bytes(payload, "big"), WINDOW)
            elif kind == END:
                self._ended = True
            self._changed.notify_all()
        if kind == END:
            self._forget()

    async def broke(self) -> None:
        async with self._changed:
            self._broken = True
            self._changed.notify_all()
        self._mux.streams.pop(self.number, None)

    def _forget(self) -> None:
        if self._ended and self._sent_end:
            self._mux.streams.pop(self.number, None)


class Mux:
    """All streams of a tunnel. `accept` is run for each stream that the other side opens.

    Whoever reads frames never waits to send one: two sides that do so would wait for each other.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[bytes]],
        write: Callable[[bytes], Awaitable[None]],
        accept: Callable[[Stream], Awaitable[None]] | None = None,
    ) -> None:
        self.streams: dict[int, Stream] = {}
        self._read, self._write, self._accept = read, write, accept
        self._writing = asyncio.Lock()
        self._next = 0
        self._pong = asyncio.Event()
        self._tasks: Any = set()

    async def send(self, number: int, kind: int, payload: bytes = b"") -> None:
        async with self._writing:
            await self._write(HEAD.pack(number, kind, len(payload)) + payload)

    async def open(self) -> Stream:
        self._next += 1
        stream = self.streams[self._next] = Stream(self, self._next)
        await self.send(stream.number, OPEN)
        return stream

    async def ping(self) -> None:
        """Returns when the other side has answered."""
        self._pong.clear()
        await self.send(0, PING)
        await self._pong.wait()

    async def run(self) -> None:
        """Until the other side is gone. Raises `MuxViolation`."""
        buffer = bytearray()
        try:
            while True:
                data = await self._read()
                if not data:
                    return
                buffer += data
                while len(buffer) >= HEAD.size:
                    number, kind, length = HEAD.unpack_from(buffer)
                    if length > FRAME:
                        raise MuxViolation("a frame is too long")
                    if len(buffer) < HEAD.size + length:
                        break
                    payload = bytes(buffer[HEAD.size : HEAD.size + length])
                    del buffer[: HEAD.size + length]
                    await self._took(number, kind, payload)
        finally:
            for stream in list(self.streams.values()):
                await stream.broke()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _took(self, number: int, kind: int, payload: bytes) -> None:
        stream = self.streams.get(number)
        if kind == OPEN and self._accept is not None:
            if stream is not None:
                raise MuxViolation("a stream is opened twice")
            if len(self.streams) >= MAX_STREAMS:
                self._start(self.send(number, RESET))
                return
            stream = self.streams[number] = Stream(self, number)
            self._start(self._accept(stream))
        elif kind == PING:
            self._start(self.send(0, PONG))
        elif kind == PONG:
            self._pong.set()
        elif stream is None:
            return  # what was on its way when we gave up
        elif kind == RESET:
            await stream.broke()
        elif kind in (DATA, END, GRANT):
            await stream.took(kind, payload)
        else:
            raise MuxViolation("a frame makes no sense")

    def _start(self, work: Any) -> None:
        def done(task: Any) -> None:
            self._tasks.discard(task)
            if not task.cancelled():
                task.exception()  # a connection that broke is nobody's business but its own

        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(done)


async def join(stream: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes both ways until both ends are done. One end that breaks breaks the other."""

    async def out() -> None:
        while True:
            data = await reader.read(FRAME)
            if not data:
                return await stream.end()
            await stream.write(data)

    async def back() -> None:
        while True:
            data = await stream.read()
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    tasks = [asyncio.ensure_future(out()), asyncio.ensure_future(back())]
    try:
        await asyncio.gather(*tasks)
    except OSError:
        pass
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()
        with contextlib.suppress(Exception):  # the tunnel itself may be gone
            await stream.reset()


async def serve_in_box(port: int) -> None:
    """The box's end: listen on loopback, carry each connection to the host over stdin and stdout."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    mux = Mux(lambda: reader.read(2**16), write)

    async def connected(incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        if len(mux.streams) >= MAX_STREAMS:
            outgoing.close()
            return
        await join(await mux.open(), incoming, outgoing)

    server = await asyncio.start_server(connected, "127.0.0.1", port, backlog=256)
    await mux.send(0, HELLO, server.sockets[0].getsockname()[1].to_bytes(4, "big"))
    await mux.run()


if __name__ == "__main__":
    asyncio.run(serve_in_box(int(sys.argv[1])))
