"""Frames over one byte stream: calls and answers as JSON, and any number of byte streams with flow control.

A call or an answer may carry bytes behind its JSON, after a NUL. A stream's sender may have `WINDOW` bytes under way;
the receiver gives credit back as they are consumed. So one slow reader holds up its own writer and nobody else.
"""

from __future__ import annotations

import errno
import json
import struct
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]

HEADER = struct.Struct(">BII")
CREDIT_BODY = struct.Struct(">I")
CALL, ANSWER, EVENT, DATA, END, CREDIT, CLOSE = range(1, 8)
WINDOW = 1 << 20
CHUNK = 1 << 16
INLINE = 1 << 18
"""A transfer of fewer bytes goes along with the call or its answer: no process and no stream is made for it."""
MAX_FRAME = 64 * 1024 * 1024
ACCEPTED = 1 << 31
"""Streams numbered from here on were opened by the box."""


class Violation(Exception):
    """The other side does not keep to the protocol."""


class Refused(Exception):
    """What was to be transferred is not what may be: a device, too much, too deep."""


def frame(kind: int, number: int, body: bytes = b"") -> bytes:
    return HEADER.pack(kind, number, len(body)) + body


def message(kind: int, number: int, content: Message, data: bytes = b"") -> bytes:
    body = json.dumps(content, separators=(",", ":")).encode()
    return frame(kind, number, body + b"\0" + data if data else body)


def parse(body: bytes) -> Message:
    """Return a message as it was sent, with the bytes behind it as `data`."""
    head, _, data = body.partition(b"\0")
    found: Message = json.loads(head)
    found["data"] = data
    return found


def failure(error: BaseException) -> Message:
    """Return the answer that tells of an error."""
    return {"error": describe(error)}


def credit(number: int, count: int) -> bytes:
    return frame(CREDIT, number, CREDIT_BODY.pack(count))


class Parser:
    """Takes bytes as they come and gives whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        buffer, at = self._buffer, 0
        buffer += data
        try:
            while len(buffer) - at >= HEADER.size:
                kind, number, length = HEADER.unpack_from(buffer, at)
                if length > MAX_FRAME or not CALL <= kind <= CLOSE:
                    raise Violation("the stream is out of step")
                end = at + HEADER.size + length
                if len(buffer) < end:
                    break
                body = bytes(memoryview(buffer)[at + HEADER.size : end])
                at = end
                yield kind, number, body
        finally:
            del buffer[:at]


def describe(error: BaseException) -> Message:
    if isinstance(error, OSError):
        return {"errno": error.errno or errno.EIO, "text": error.strerror or str(error), "path": error.filename}
    return {"refused": str(error)}


def revive(data: Any) -> Exception:
    """Return the other side's error as an exception; what is no error of ours is `Refused`."""
    if not isinstance(data, dict) or type(data.get("errno")) is not int or "refused" in data:
        return Refused(str(data.get("refused") if isinstance(data, dict) else data))
    path = data.get("path")
    return OSError(data["errno"], str(data.get("text")), *([str(path)] if path else []))
