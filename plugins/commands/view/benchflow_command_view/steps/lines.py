"""JSON lines of a file that may still grow, each once."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["BROKEN", "Lines"]

BROKEN = "not_understood"
_CHUNK = 1 << 20
_LONGEST = 64 << 20
"""Bytes of one line that are read; a longer one is named and left out."""


class Lines:
    """Remembers how far it has read. A last line without an end is kept for the next time."""

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path, self.position = path, start
        self._held = b""
        self._skipping = False
        self._whole: deque[bytes] = deque()
        """Lines that were read and not asked for yet: whoever asks may stop at any of them."""

    def _waiting(self) -> Iterator[dict[str, Any]]:
        while self._whole:
            line = self._whole.popleft()
            if line.strip():
                yield parsed(line)

    def new(self) -> Iterator[dict[str, Any]]:
        """Those that were added; a line that is no JSON object comes as one that says so."""
        try:
            stream = self.path.open("rb")
        except OSError:
            return
        with stream:
            if stream.seek(0, 2) < self.position:  # it was written anew
                self.position, self._held = 0, b""
                self._whole.clear()
            yield from self._waiting()
            stream.seek(self.position)
            while chunk := stream.read(_CHUNK):
                self.position += len(chunk)
                *whole, self._held = (self._held + chunk).split(b"\n")
                if self._skipping and whole:
                    self._skipping = False
                    del whole[0]
                self._whole.extend(whole)
                yield from self._waiting()
                if len(self._held) > _LONGEST:
                    self._held, self._skipping = b"", True
                    yield {"kind": BROKEN, "data": {"line": f"a line of more than {_LONGEST >> 20} MB"}}

    def rest(self) -> Iterator[dict[str, Any]]:
        """A last line without an end, of a file that will not grow."""
        held, self._held = self._held, b""
        if held.strip():
            yield parsed(held)


def parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    return {"kind": BROKEN, "data": {"line": line[:2000].decode("utf-8", "replace")}}
