"""What every supervisor's loop has: descriptors that are ready, frames for streams, children that ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable

from benchflow_boxkit.inside import wire
from benchflow_boxkit.inside.pumps import Incoming, Outgoing


class Polling(ABC):
    def __init__(self, call: Callable[[int, bytes], None]) -> None:
        self.call = call
        self.poll = select.epoll()
        self.handlers: dict[int, Callable[[int], None]] = {}
        self.outgoing: dict[int, Outgoing] = {}
        self.incoming: dict[int, Incoming] = {}
        self.own: set[int] = set()
        """Children that are ours and not the box's, until they are reaped: only then may their number mean another."""
        self.parser = wire.Parser()
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wakeup, write = os.pipe()
        for fd in (self._wakeup, write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self.watch(self._wakeup, select.EPOLLIN, self._child)

    @abstractmethod
    def send(self, data: bytes) -> None:
        """To the host."""

    def serve(self) -> None:
        while True:
            self.handle()

    def watch(self, fd: int, events: int, handler: Callable[[int], None]) -> None:
        if fd in self.handlers:
            self.poll.modify(fd, events)
        else:
            self.poll.register(fd, events)
        self.handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        if self.handlers.pop(fd, None) is not None:
            self.poll.unregister(fd)

    def handle(self, timeout: float | None = None) -> None:
        """Whatever is ready."""
        for fd, events in self.poll.poll(timeout):
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
        """Children that ended: keepers, workers, and orphans of keepers that somebody killed."""
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) > 0:
                self.own.discard(pid)
