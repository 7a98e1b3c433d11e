"""Messages with descriptors over a Unix socket: a header, then JSON. Both sides of it use this."""

from __future__ import annotations

import array
import contextlib
import errno
import json
import os
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]

HEADER = struct.Struct("!IB")
MAX_MESSAGE = 64 * 1024 * 1024
MAX_FDS = 32
PATIENCE, PAUSE = 60.0, 0.005
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_ANCILLARY = socket.CMSG_SPACE(MAX_FDS * 4)


def encode(message: Message, fds: Sequence[int] = ()) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return HEADER.pack(len(body), len(fds)) + body


def ancillary(fds: Sequence[int]) -> list[tuple[int, int, bytes]]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds).tobytes())] if fds else []


def take_fds(found: Sequence[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, data in found:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return list(fds)


def recv_part(sock: socket.socket, limit: int) -> tuple[bytes, list[int]]:
    """One `recvmsg`: what came, and the descriptors attached to it, closed on exec."""
    data, found, _, _ = sock.recvmsg(limit, _ANCILLARY, _CLOSE_ON_EXEC)
    return data, take_fds(found)


def must_wait(error: OSError) -> bool:
    """A normal user may have only so many descriptors under way, in all sockets together: some have to arrive first."""
    return error.errno == errno.ETOOMANYREFS


def _send_first(sock: socket.socket, data: bytes, fds: Sequence[int]) -> int:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return sock.sendmsg([data], ancillary(fds))
        except OSError as error:
            if not must_wait(error) or time.monotonic() > end:
                raise
        time.sleep(PAUSE)


def send(sock: socket.socket, message: Message, fds: Sequence[int] = ()) -> None:
    data = encode(message, fds)
    sent = _send_first(sock, data, fds)
    if sent < len(data):
        sock.sendall(data[sent:])


def receive(sock: socket.socket) -> tuple[Message, list[int]]:
    """The next message of a blocking socket. Raises `EOFError` when the other side is gone."""
    fds: list[int] = []

    def exactly(count: int) -> bytes:
        parts = []
        while count:
            data, more = recv_part(sock, count)
            fds.extend(more)
            if not data:
                raise EOFError
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    try:
        length, _ = HEADER.unpack(exactly(HEADER.size))
        if length > MAX_MESSAGE:
            raise EOFError
        message: Message = json.loads(exactly(length))
    except BaseException:
        close_fds(fds)
        raise
    return message, fds


def close_fds(fds: Sequence[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


def decode(data: bytes | bytearray) -> Message:
    """A whole message, as `encode` made it."""
    length, _ = HEADER.unpack_from(data)
    message: Message = json.loads(data[HEADER.size : HEADER.size + length])
    return message
