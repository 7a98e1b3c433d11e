"""Processes that do the helper's longer work, kept for the next piece of it: a new fork of an interpreter costs
milliseconds, most of them in copies of memory that it only looks at."""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from benchflow_boxkit.inside import system, wire
from benchflow_boxkit.inside.polling import Polling

_IDLE: Final = 4
_PIECES: Final = 200
"""After so many a worker ends: what it may have hoarded goes with it."""
_GOES_ON, _ENDS = 0, 1
"""Said with a result: whether the worker can be given more."""
_LOST: Final = json.dumps({"lost": "the process that did it ended"}).encode()

Work = Callable[[str, dict[str, Any]], dict[str, Any]]
Done = Callable[[bytes], None]
"""Takes the result of a piece of work, as JSON."""


class _Busy(NamedTuple):
    sock: socket.socket
    parser: wire.Parser
    done: Done


class Workers:
    """They have the helper's namespaces and ids, and end when it does."""

    def __init__(self, loop: Polling, work: Work) -> None:
        self._loop, self._work = loop, work
        self._idle: list[socket.socket] = []
        self._busy: dict[int, _Busy] = {}

    def give(self, name: str, arguments: dict[str, Any], done: Done) -> None:
        """Have a piece of work done; `done` is called in any case, also when the worker is lost."""
        message = wire.message(wire.CALL, 0, {"work": name, "with": arguments})
        while True:
            sock = self._idle.pop() if self._idle else self._hire()
            try:
                sock.sendall(message)
                break
            except ConnectionError:  # somebody killed it while it had nothing to do
                sock.close()
        self._busy[sock.fileno()] = _Busy(sock, wire.Parser(), done)
        self._loop.watch(sock.fileno(), select.POLLIN, lambda _: self._readable(sock.fileno()))

    def _readable(self, fd: int) -> None:
        busy = self._busy[fd]
        data = _received(busy.sock)
        for _, state, result in busy.parser.feed(data):
            self._free(fd, keep=state == _GOES_ON and len(self._idle) < _IDLE)
            busy.done(result)
            return
        if not data:
            self._free(fd, keep=False)
            busy.done(_LOST)

    def _free(self, fd: int, *, keep: bool) -> None:
        busy = self._busy.pop(fd)
        self._loop.unwatch(fd)
        if keep:
            self._idle.append(busy.sock)
        else:
            busy.sock.close()

    def wait(self, done: Done) -> None:
        """Wait until the piece of work with this `done` is finished, which is not called."""
        for busy in self._busy.values():
            if busy.done == done:
                _received(busy.sock)

    def dismiss(self) -> None:
        """End those that have nothing to do."""
        while self._idle:
            self._idle.pop().close()

    def _hire(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid:
            theirs.close()
            return ours
        try:
            system.close_except({0, 1, 2, theirs.fileno()})
            self._serve(theirs)
        finally:
            os._exit(0)

    def _serve(self, sock: socket.socket) -> None:
        """In a worker: one piece after the other, until the helper has ended."""
        parser = wire.Parser()
        left = _PIECES
        while left and (data := _received(sock)):
            for _, _, body in parser.feed(data):
                message = wire.parse(body)
                try:
                    result = self._work(message["work"], message["with"])
                except (OSError, wire.Refused) as error:
                    result = wire.failure(error)
                left -= 1
                state = _GOES_ON if left else _ENDS
                sock.sendall(wire.frame(wire.ANSWER, state, json.dumps(result).encode()))


def _received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(1 << 18)
    except ConnectionError:
        return b""
