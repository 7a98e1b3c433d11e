"""The agent's standard error and stray output: always drained, kept in bounded space."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["CappedLog"]

_HEAD = 1 << 20
_TAIL = 256 << 10
_EXCERPT = 4000


class CappedLog:
    """Keeps the beginning in the file as it comes, the end in memory until `close`."""

    def __init__(self, path: Path | None, *, head: int = _HEAD, tail: int = _TAIL) -> None:
        self._room = head
        self._limit = tail
        self._tail = bytearray()
        self._left_out = 0
        self._path = path
        self._file: BinaryIO | None = None

    def write(self, data: bytes) -> None:
        first, rest = data[: self._room], data[self._room :]
        self._room -= len(first)
        if first:
            self._append(first)
        self._left_out += len(rest)
        self._tail += data
        if len(self._tail) > 2 * self._limit:
            del self._tail[: -self._limit]

    def excerpt(self) -> str:
        """The last lines, for an error's details."""
        return bytes(self._tail[-_EXCERPT:]).decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Adds the end of what did not fit. Safe to call again."""
        end = bytes(self._tail[-min(self._left_out, self._limit) :]) if self._left_out else b""
        skipped = self._left_out - len(end)
        if skipped:
            self._append(f"\n[... {skipped} bytes left out ...]\n".encode())
        if end:
            self._append(end)
        self._left_out = 0
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = None
        self._path = None

    def _append(self, data: bytes) -> None:
        """A log that cannot be written is no reason to lose the run."""
        if self._path is None:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("ab", buffering=0)
            self._file.write(data)
        except OSError:
            self._path = None
