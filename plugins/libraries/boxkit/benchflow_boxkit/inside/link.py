"""One lasting byte stream over connections that may break: what was not confirmed is sent again on the next one.

A connection begins with a greeting each way, which says how much has arrived. After it come packets: a piece of the
stream, or a confirmation. Either side keeps what it sent until it is confirmed, so a break in the middle loses nothing.
A packet carries a checksum that begins with its place in the stream: bytes that a vendor's client sends twice, loses or
mixes up end the connection, and the next one goes on from what arrived whole.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any

MARK = b"\x00\x01benchflow-box\x01\x00"
"""Printed by the box before its greeting: whatever a shell or a terminal said first is left behind."""
PACKET = struct.Struct(">BII")
"""Kind, length, checksum."""
COUNT = struct.Struct(">Q")
PIECE, CONFIRM, GREET = 1, 2, 3
LARGEST = 1 << 20
_CONFIRM_EVERY = 1 << 18


class ProtocolError(Exception):
    """The connection does not speak this protocol."""


def _checksum(body: bytes, at: int) -> int:
    return zlib.crc32(body, at & 0xFFFFFFFF)


def packet(kind: int, body: bytes, at: int = 0) -> bytes:
    """`at`: where in the stream a piece begins."""
    return PACKET.pack(kind, len(body), _checksum(body, at)) + body


def greeting(content: dict[str, Any]) -> bytes:
    return packet(GREET, json.dumps(content).encode())


class UnconfirmedData:
    """What was sent and is not confirmed yet."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._first = 0
        self.end = 0

    def add(self, data: bytes) -> None:
        self._parts.append(data)
        self.end += len(data)

    @property
    def size(self) -> int:
        return self.end - self._first

    def confirm(self, count: int) -> None:
        """An older confirmation than the last says nothing new."""
        if count > self.end:
            raise ProtocolError(f"{count} bytes are confirmed, and {self.end} were sent")
        while self._parts and self._first + len(self._parts[0]) <= count:
            self._first += len(self._parts.popleft())

    def since(self, count: int) -> Iterator[bytes]:
        """From there on, as it has to be sent again."""
        at = self._first
        for part in list(self._parts):
            if at + len(part) > count:
                yield part[max(0, count - at) :]
            at += len(part)


class Incoming:
    """Takes a connection's bytes as they come; counts what has arrived over all connections."""

    def __init__(self) -> None:
        self.received = 0
        self._confirmed = 0
        self._buffer = bytearray()

    def renew(self) -> None:
        """A new connection: the half of a packet that the old one left is void."""
        self._buffer.clear()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Whole packets. A piece counts as received when it is given out."""
        buffer, at = self._buffer, 0
        buffer += data
        try:
            while len(buffer) - at >= PACKET.size:
                kind, length, checksum = PACKET.unpack_from(buffer, at)
                if length > LARGEST or not PIECE <= kind <= GREET:
                    raise ProtocolError("the connection is out of step")
                end = at + PACKET.size + length
                if len(buffer) < end:
                    break
                body = bytes(memoryview(buffer)[at + PACKET.size : end])
                if checksum != _checksum(body, self.received if kind == PIECE else 0):
                    raise ProtocolError("a packet is not what was sent")
                at = end
                if kind == PIECE:
                    self.received += len(body)
                yield kind, body
        finally:
            del buffer[:at]

    def due(self) -> bytes:
        """A confirmation, when enough has come since the last."""
        if self.received - self._confirmed < _CONFIRM_EVERY:
            return b""
        self._confirmed = self.received
        return packet(CONFIRM, COUNT.pack(self.received))
