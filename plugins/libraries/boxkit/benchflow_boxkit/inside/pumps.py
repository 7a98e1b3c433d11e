"""Between descriptors and streams: one way each, never more under way than the other side has room for."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import sys
from typing import TYPE_CHECKING

from benchflow_boxkit.inside import wire

if TYPE_CHECKING:
    from benchflow_boxkit.inside.polling import Polling

_GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF)


class Outgoing:
    """What comes out of a descriptor goes to the other side."""

    def __init__(self, loop: Polling, number: int, fd: int) -> None:
        self.loop, self.number, self.fd, self.credit = loop, number, fd, wire.WINDOW
        self.discarding = False
        os.set_blocking(fd, False)
        loop.outgoing[number] = self
        loop.watch(fd, select.POLLIN, self.ready)

    def ready(self, _: int) -> None:
        self.pass_on(wire.CHUNK if self.discarding else min(wire.CHUNK, self.credit))
        if self.fd >= 0 and not self.discarding and self.credit <= 0:
            self.loop.unwatch(self.fd)

    def pass_on(self, limit: int) -> int:
        try:
            data = os.read(self.fd, limit)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self.close()
            return 0
        if not self.discarding:
            self.credit -= len(data)
            self.loop.send(wire.frame(wire.DATA, self.number, data))
        return len(data)

    def give(self, count: int) -> None:
        starved, self.credit = self.credit <= 0, self.credit + count
        if self.fd >= 0 and starved and self.credit > 0:
            self.loop.watch(self.fd, select.POLLIN, self.ready)

    def flush(self) -> None:
        """All that was written up to now. Whoever still holds the other end goes on writing, into nothing."""
        left = _capacity(self.fd) if self.fd >= 0 else 0
        while self.fd >= 0 and left > 0 and (count := self.pass_on(min(left, wire.CHUNK))):
            left -= count
        self.discarding = True
        if self.fd >= 0:
            self.loop.send(wire.frame(wire.END, self.number))
            self.loop.watch(self.fd, select.POLLIN, self.ready)

    def close(self, tell: bool = True) -> None:
        if self.fd < 0:
            return
        self.loop.unwatch(self.fd)
        os.close(self.fd)
        self.fd = -1
        self.loop.outgoing.pop(self.number, None)
        if tell and not self.discarding:
            self.loop.send(wire.frame(wire.END, self.number))


def _capacity(pipe: int) -> int:
    return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) if sys.platform == "linux" else wire.CHUNK


class Incoming:
    """What the other side sends goes into a descriptor."""

    def __init__(self, loop: Polling, number: int, fd: int, sock: socket.socket | None = None) -> None:
        self.loop, self.number, self.fd, self.sock = loop, number, fd, sock
        self.buffer = bytearray()
        self.ended = False
        self.owed = 0
        os.set_blocking(fd, False)
        loop.incoming[number] = self

    def take(self, data: bytes) -> None:
        waiting = bool(self.buffer)
        self.buffer += data
        if len(self.buffer) > 2 * wire.WINDOW:
            raise wire.Violation("more than there is room for")
        if not waiting:
            self.write(0)

    def write(self, _: int) -> None:
        try:
            while self.buffer:
                with memoryview(self.buffer) as view:
                    count = os.write(self.fd, view[: wire.CHUNK])
                del self.buffer[:count]
                self.owed += count
        except BlockingIOError:
            self.loop.watch(self.fd, select.POLLOUT, self.write)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            self.close(tell=True)
            return
        if self.owed >= wire.WINDOW // 4:
            self.loop.send(wire.credit(self.number, self.owed))
            self.owed = 0
        if not self.buffer:
            self.loop.unwatch(self.fd)
            if self.ended:
                self.close(tell=False)

    def end(self) -> None:
        self.ended = True
        if not self.buffer:
            self.close(tell=False)

    def close(self, tell: bool) -> None:
        if self.fd < 0:
            return
        self.loop.unwatch(self.fd)
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_WR)
            self.sock.close()
        else:
            os.close(self.fd)
        self.fd = -1
        self.buffer.clear()
        self.loop.incoming.pop(self.number, None)
        if tell:
            self.loop.send(wire.frame(wire.CLOSE, self.number))


def connect(loop: Polling, number: int, sock: socket.socket) -> None:
    """A connection as a stream, both ways."""
    other = sock.dup()
    Incoming(loop, number, other.fileno(), other)
    Outgoing(loop, number, sock.detach())
