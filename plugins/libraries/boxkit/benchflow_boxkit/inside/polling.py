"""What every supervisor's loop has: descriptors that are ready, frames for streams, children that ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from benchflow_boxkit.inside import passing, wire
from benchflow_boxkit.inside.pumps import Incoming, Outgoing


class Polling(ABC):
    def __init__(self, call: Callable[[int, bytes], None]) -> None:
        self.call = call
        self.ended: Callable[[int, int], None] = lambda pid, code: None
        """Called for every child that was reaped, with its exit code."""
        self.poll = select.poll()
        self.handlers: dict[int, Callable[[int], None]] = {}
        self.outgoing: dict[int, Outgoing] = {}
        self.incoming: dict[int, Incoming] = {}
        self.passed: deque[int] = deque()
        """Descriptors that came with calls which are still to be read."""
        self.own: set[int] = set()
        """Children that are ours and not the box's, until they are reaped: only then may their number mean another."""
        self.parser = wire.Parser()
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wakeup, write = os.pipe()
        for fd in (self._wakeup, write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self.watch(self._wakeup, select.POLLIN, self._child)

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Send to the host."""

    def serve(self) -> None:
        while True:
            self.handle()

    def watch(self, fd: int, events: int, handler: Callable[[int], None]) -> None:
        self.poll.register(fd, events)
        self.handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        if self.handlers.pop(fd, None) is not None:
            self.poll.unregister(fd)

    def handle(self, timeout: float | None = None) -> None:
        """Serve whatever is ready."""
        for fd, events in self.poll.poll(None if timeout is None else timeout * 1000):
            handler = self.handlers.get(fd)
            if handler is not None:
                handler(events)

    def frame(self, kind: int, number: int, body: bytes) -> None:
        outgoing, incoming = self.outgoing.get(number), self.incoming.get(number)
        if kind == wire.CALL:
            self.call(number, body)
        elif kind == wire.DATA and incoming:
            incoming.take(body)
        elif kind == wire.END and incoming:
            incoming.end()
        elif kind == wire.CREDIT and outgoing:
            outgoing.give(wire.CREDIT_BODY.unpack(body)[0])
        elif kind == wire.CLOSE and outgoing:
            outgoing.close(tell=False)

    def _child(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, 4096)
        self.reap()

    def reap(self) -> None:
        """Collect children that ended: programs, keepers, workers, and orphans of keepers that somebody killed."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0] > 0:
                self.own.discard(found[0])
                self.ended(found[0], os.waitstatus_to_exitcode(found[1]))


class DirectLoop(Polling):
    """The loop of a supervisor whose owner is at the other end of two descriptors, or of one socket.

    It ends with its owner: `serve` raises `EOFError`.
    """

    def __init__(self, call: Callable[[int, bytes], None], source: int = 0, target: int = 1) -> None:
        super().__init__(call)
        self._target, self._open = target, True
        self._waiting: list[bytes] = []
        self._socket = socket.socket(fileno=source) if source == target else None
        self._source = source
        self.watch(source, select.POLLIN, self._readable)

    def close(self) -> None:
        """The owner is gone: nothing more is sent to it."""
        self._open = False

    def send(self, data: bytes) -> None:
        self._waiting.append(data)

    def handle(self, timeout: float | None = None) -> None:
        """Serve whatever is ready, and send what that gave in one piece: each is a system call and wakes the owner."""
        super().handle(timeout)
        if self._waiting:
            view = memoryview(b"".join(self._waiting))
            self._waiting.clear()
            while view and self._open:  # blocks while the other side is slow to read, which it always does in the end
                view = view[os.write(self._target, view) :]

    def _readable(self, _: int) -> None:
        if self._socket is None:
            data = os.read(self._source, 1 << 18)
        else:
            data, passed = passing.receive(self._socket)
            self.passed += passed
        if not data:
            self.close()
            raise EOFError
        for kind, number, body in self.parser.feed(data):
            self.frame(kind, number, body)
