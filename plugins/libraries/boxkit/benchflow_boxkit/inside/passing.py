"""Descriptors passed over a Unix socket, where both ends of it share a kernel.

In a transfer over such a socket a large file is a row and a descriptor: its bytes stay in the kernel.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

LARGE: Final = 1 << 16
"""Files of this size and more are passed as descriptors."""
MOST: Final = 32
"""Descriptors that come with one message."""
PAUSE: Final = 0.005
_CLOSED_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_TOGETHER: Final = 1 << 16
_PIECE: Final = 1 << 30
_BUFFER: Final = 1 << 20


class PassedFile(NamedTuple):
    """The row of a file in a transfer, and the file."""

    row: bytes
    descriptor: int


def must_wait(error: OSError) -> bool:
    """Report whether the kernel asks for patience: of a normal user's descriptors only so many may be under way."""
    return error.errno == errno.ETOOMANYREFS


def receive(sock: socket.socket) -> tuple[bytes, Sequence[int]]:
    """Return what came, and the descriptors with it. Nothing: the other end is closed."""
    try:
        data, found, _, _ = socket.recv_fds(sock, 1 << 18, MOST, _CLOSED_ON_EXEC)
    except ConnectionError:
        return b"", ()
    return data, found


def reader(source: int) -> Callable[[], tuple[bytes, Sequence[int]]]:
    """Return what reads a transfer from a pipe, a file or a socket."""
    if not stat.S_ISSOCK(os.fstat(source).st_mode):
        return lambda: (os.read(source, 1 << 18), ())
    sock = socket.socket(fileno=source)
    return lambda: receive(sock)


def send(sock: socket.socket, parts: Iterable[bytes | PassedFile]) -> None:
    """Send a transfer over a blocking socket, small rows together. Closes the descriptors."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        if isinstance(part, PassedFile):
            try:
                sock.sendall(b"".join(waiting))
                _send_first(sock, part)
            finally:
                os.close(part.descriptor)
            waiting, size = [], 0
            continue
        waiting.append(part)
        size += len(part)
        if size >= _TOGETHER:
            sock.sendall(b"".join(waiting))
            waiting, size = [], 0
    sock.sendall(b"".join(waiting))


def _send_first(sock: socket.socket, part: PassedFile) -> None:
    while True:
        try:
            sent = socket.send_fds(sock, [part.row], [part.descriptor])
            break
        except OSError as error:
            if not must_wait(error):
                raise
        time.sleep(PAUSE)
    sock.sendall(part.row[sent:])


def copy(source: int, target: int, size: int) -> None:
    """Copy `size` bytes of a regular file, in the kernel where it can; fewer where the file shrank meanwhile."""
    offset = 0
    while offset < size:
        copied = _copy_piece(source, target, offset, min(size - offset, _PIECE))
        if not copied:
            return
        offset += copied


def _copy_piece(source: int, target: int, offset: int, count: int) -> int:
    if sys.platform == "linux":
        try:
            if copied := os.copy_file_range(source, target, count, offset, offset):
                return copied
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF):
                raise
        os.lseek(target, offset, os.SEEK_SET)
        return os.sendfile(target, source, offset, count)
    return os.pwrite(target, os.pread(source, min(count, _BUFFER), offset), offset)


def close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
