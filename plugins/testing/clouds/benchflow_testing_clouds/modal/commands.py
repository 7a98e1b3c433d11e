"""Commands in a box: what they print is kept with its offsets, so that a reader may come back for the rest."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from grpclib import Status

from benchflow_core.contracts import Process
from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.modal.state import refuse

__all__ = ["ExecCommand"]

_AHEAD = 4 << 20
_BEHIND = 4 << 20


class _Output:
    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.start, self.data, self.sent = 0, bytearray(), 0
        self.ended = False
        self.changed = asyncio.Condition()

    async def take(self, data: bytes) -> None:
        """Waits while too much is unread."""
        async with self.changed:
            if self.keep:
                self.data += data
            self.changed.notify_all()
            await self.changed.wait_for(lambda: self.ended or self.start + len(self.data) - self.sent < _AHEAD)

    async def end(self) -> None:
        async with self.changed:
            self.ended = True
            self.changed.notify_all()

    async def read(self, offset: int) -> AsyncIterator[bytes]:
        if offset < self.start:
            raise refuse(Status.OUT_OF_RANGE, f"output before {self.start} is not kept")
        while True:
            async with self.changed:
                while not self.ended and self.start + len(self.data) <= offset:
                    await self.changed.wait()
                part = bytes(self.data[offset - self.start : offset - self.start + 65536])
            if not part:
                return
            yield part
            offset += len(part)
            async with self.changed:
                self.sent = max(self.sent, offset)
                if (spare := self.sent - _BEHIND - self.start) > _BEHIND:
                    del self.data[:spare]
                    self.start += spare
                self.changed.notify_all()


class ExecCommand:
    def __init__(self, process: Process, out: bool, err: bool) -> None:
        self.process = process
        self.outputs = (_Output(out), _Output(err))
        self.written, self.closed = 0, False
        self.code: int | None = None
        self.gone = False
        self.finished, self.exited = asyncio.Event(), asyncio.Event()
        self._writing = asyncio.Lock()
        self._pump = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        exit_ = asyncio.ensure_future(self._wait())
        await asyncio.gather(
            self._copy(self.process.read, self.outputs[0]), self._copy(self.process.read_stderr, self.outputs[1])
        )
        await exit_
        self.finished.set()
        for output in self.outputs:
            await output.end()

    async def _wait(self) -> None:
        try:
            self.code = await self.process.wait()
        except BenchflowError:
            self.gone = True
        self.exited.set()

    @staticmethod
    async def _copy(read, output: _Output) -> None:  # type: ignore[no-untyped-def]
        with contextlib.suppress(BenchflowError):
            while data := await read():
                await output.take(data)

    def lost(self) -> None:
        """The box is gone."""
        self.gone = True
        self._pump.cancel()
        self.finished.set()
        self.exited.set()
        self._ends = [asyncio.ensure_future(output.end()) for output in self.outputs]

    async def write(self, offset: int, data: bytes, eof: bool) -> None:
        """Bytes that are there already are not written again; what a cut connection leaves half done is done."""
        await asyncio.shield(asyncio.ensure_future(self._write(offset, data, eof)))

    async def _write(self, offset: int, data: bytes, eof: bool) -> None:
        async with self._writing:
            if offset > self.written:
                raise refuse(Status.INVALID_ARGUMENT, f"offset {offset} is beyond {self.written}")
            fresh = data[self.written - offset :]
            if fresh and (self.closed or self.finished.is_set()):
                raise refuse(Status.FAILED_PRECONDITION, "stdin is closed")
            try:
                if fresh:
                    await self.process.write(fresh)
                    self.written += len(fresh)
                if eof and not self.closed:
                    self.closed = True
                    await self.process.close_stdin()
            except BenchflowError as error:
                raise refuse(Status.FAILED_PRECONDITION, error.message) from error
