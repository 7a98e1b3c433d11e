"""One running process: pipes without a buffer of our own, so that back-pressure is the kernel's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO

from benchflow_core.errors import TransportError

from {{module}}.trees import end_all


class Running:
    """Satisfies `benchflow_core.contracts.Process`."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], mark: str) -> None:
        self._mark = mark
        self._popen = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env={**env, "BENCHFLOW_EXEC": mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self._popen.stdin and self._popen.stdout and self._popen.stderr
        self._stdin, self._stdout, self._stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = loop.create_future()
        watch = os.pidfd_open(self._popen.pid)
        loop.add_reader(watch, self._on_exit, loop, watch)

    def _on_exit(self, loop: asyncio.AbstractEventLoop, watch: int) -> None:
        loop.remove_reader(watch)
        os.close(watch)
        self.ended.set_result(self._popen.wait())

    @property
    def pid(self) -> int:
        return self._popen.pid

    async def read(self, limit: int = 65536) -> bytes:
        return await _read(self._stdout, limit)

    async def read_stderr(self, limit: int = 65536) -> bytes:
        return await _read(self._stderr, limit)

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._stdin.closed or self.ended.done():
                raise TransportError("The process has ended.")
            try:
                view = view[os.write(self._stdin.fileno(), view) :]
            except BlockingIOError:
                await _ready(self._stdin.fileno(), self.ended, write=True)
            except OSError as error:
                raise TransportError(f"The process takes no more input: {error}") from error

    async def close_stdin(self) -> None:
        self._stdin.close()

    async def wait(self) -> int:
        return await asyncio.shield(self.ended)

    async def kill(self) -> None:
        """Ends the process and all its descendants, in whatever session they are."""
        if not self.ended.done():
            self._popen.kill()  # it may be so young that its environment cannot be read yet
        await asyncio.to_thread(end_all, "BENCHFLOW_EXEC", self._mark)
        await self.wait()

    def close(self) -> None:
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()


async def _read(pipe: IO[bytes], limit: int) -> bytes:
    while not pipe.closed:
        try:
            if data := os.read(pipe.fileno(), limit):
                return data
            pipe.close()
        except BlockingIOError:
            await _ready(pipe.fileno())
    return b""


async def _ready(fd: int, ended: asyncio.Future[int] | None = None, *, write: bool = False) -> None:
    """Until the pipe can be read or written, or the process has ended. Giving up loses nothing."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    add(fd, tell)
    try:
        await asyncio.wait([ready, *([ended] if ended is not None else ())], return_when=asyncio.FIRST_COMPLETED)
    finally:
        with contextlib.suppress(ValueError):
            remove(fd)
