"""Bytes to lines to JSON, with limits: what an agent prints is untrusted."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

__all__ = ["Line", "LineBuffer", "LineTooLong", "MalformedLine", "decode", "encode", "salvage"]

Line = bytes | bytearray

_MAX_DEPTH = 200
"""Deeper nesting would overflow the stack of whoever writes the value out again."""
_SALVAGE_TRIES = 8
_SALVAGE_BYTES = 1 << 20


class LineTooLong(Exception):
    """A line without end went over the limit."""


class MalformedLine(ValueError):
    """Not JSON that we are willing to look at."""


class LineBuffer:
    """Splits chunks into lines. Holds at most `limit` bytes of an unfinished line."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """The lines that `chunk` completes, without their newline."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._grow(end)
            line, self._open = self._open, bytearray()
            yield line
        self._grow(rest)

    def flush(self) -> Iterator[Line]:
        """The last line, if the stream ended without a newline."""
        if self._open:
            line, self._open = self._open, bytearray()
            yield line

    def _grow(self, part: bytes) -> None:
        if len(self._open) + len(part) > self._limit:
            raise LineTooLong
        self._open += part


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


_decoder = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite)
_encoder = json.JSONEncoder(separators=(",", ":"))


def encode(message: dict[str, Any]) -> bytes:
    """One line: ASCII only, so no agent's idea of UTF-8 or of line ends can break it."""
    return _encoder.encode(message).encode("ascii") + b"\n"


def decode(line: Line) -> Any:
    """A JSON value that can be written out again as JSON and as UTF-8. Raises `MalformedLine`."""
    text = line.decode("utf-8", "replace")
    try:
        value = _decoder.decode(text)
        if "\\ud" in text or "\\uD" in text:
            value = _decoder.decode(_without_lone_surrogates(value))
        if line.count(b"[") + line.count(b"{") > _MAX_DEPTH and _too_deep(value):
            raise MalformedLine("nested too deeply")
    except (ValueError, RecursionError) as error:
        raise MalformedLine(str(error)) from None
    return value


def _without_lone_surrogates(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [item for box in level for item in _children(box)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, dict | list)]


def salvage(line: Line) -> Any:
    """The message at the end of a line that begins with noise (a shell's prompt, escape codes), or `None`."""
    at = -1
    for _ in range(_SALVAGE_TRIES if len(line) <= _SALVAGE_BYTES else 0):
        at = line.find(b"{", at + 1)
        if at < 0:
            return None
        try:
            return decode(line[at:])
        except MalformedLine:
            continue
    return None
