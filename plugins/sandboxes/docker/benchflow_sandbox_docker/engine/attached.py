"""The standard streams of a container's first process, over the engine's attach stream."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import AsyncIterator
from typing import Final

from benchflow_sandbox_docker.engine.http import Streams

__all__ = ["Attached"]

_FRAME: Final = struct.Struct(">BxxxI")
_STDOUT: Final = 1
_LOG: Final = 1 << 16


class Attached:
    """The line that a box's channel speaks over: its standard input and output."""

    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams
        self.log = bytearray()
        """What the first process printed beside that: nothing, unless it failed."""

    @property
    def failure(self) -> str:
        return self.log.decode(errors="replace").strip()[-2000:]

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            self._writer.close()

    async def pieces(self) -> AsyncIterator[bytes]:
        buffer = bytearray()
        try:
            with contextlib.suppress(OSError):
                while data := await self._reader.read(1 << 18):
                    buffer += data
                    if printed := self._take(buffer):
                        yield printed
        finally:
            self._writer.close()

    def _take(self, buffer: bytearray) -> bytes:
        """What whole frames of the engine's hold of standard output, all in one."""
        at, parts = 0, []
        while len(buffer) - at >= _FRAME.size:
            kind, length = _FRAME.unpack_from(buffer, at)
            end = at + _FRAME.size + length
            if len(buffer) < end:
                break
            body = bytes(memoryview(buffer)[at + _FRAME.size : end])
            at = end
            if kind == _STDOUT:
                parts.append(body)
            else:
                self.log = (self.log + body)[-_LOG:]
        del buffer[:at]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def close(self) -> None:
        self._writer.close()
