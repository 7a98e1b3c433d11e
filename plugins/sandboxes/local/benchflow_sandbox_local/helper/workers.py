"""Processes that do the helper's longer work, kept for the next piece of it: a new fork of an interpreter costs
milliseconds, most of them in copies of memory that it only looks at."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from benchflow_sandbox_local.helper import linux, transfer, wire

_IDLE: Final = 4
_PIECES: Final = 200
"""After so many a worker ends: what it may have hoarded goes with it."""

Work = Callable[[str, dict[str, Any]], dict[str, Any]]


class _Busy(NamedTuple):
    sock: socket.socket
    then: Callable[[], None] | None


class Workers:
    """They have the helper's namespaces and ids, and end when it does."""

    def __init__(self, poll: select.poll, work: Work) -> None:
        self._poll, self._work = poll, work
        self._idle: list[socket.socket] = []
        self._busy: dict[int, _Busy] = {}

    def give(
        self, name: str, arguments: dict[str, Any], fds: Sequence[int] = (), then: Callable[[], None] | None = None
    ) -> None:
        """A piece of work; its result goes to `fds[0]`. `then` is called when it is done, or the worker is gone."""
        message = {"work": name, "with": arguments}
        while True:
            sock = self._idle.pop() if self._idle else self._hire()
            try:
                wire.send(sock, message, fds)
                break
            except (BrokenPipeError, ConnectionError):  # somebody killed it while it had nothing to do
                sock.close()
        self._busy[sock.fileno()] = _Busy(sock, then)
        self._poll.register(sock, select.POLLIN)

    def hear(self, fd: int) -> bool:
        """Is it one of ours that says something? It can only be that it is done."""
        busy = self._busy.pop(fd, None)
        if busy is None:
            return False
        self._poll.unregister(fd)
        if _said_something(busy.sock) and len(self._idle) < _IDLE:
            self._idle.append(busy.sock)
        else:
            busy.sock.close()
        if busy.then:
            busy.then()
        return True

    def wait(self, then: Callable[[], None]) -> None:
        """Until the piece of work with this `then` is done, which is not called."""
        for busy in self._busy.values():
            if busy.then == then:
                _said_something(busy.sock)

    def dismiss(self) -> None:
        """Those that have nothing to do."""
        while self._idle:
            self._idle.pop().close()

    def _hire(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        if os.fork():
            theirs.close()
            return ours
        try:
            linux.close_all_except([0, 1, 2, theirs.fileno()])
            for left in reversed(range(_PIECES)):
                message, fds = wire.receive(theirs)
                result = self._result(message)
                if left:  # else our end says so: a last word could be taken for a wish for more
                    theirs.send(b".")  # before the result: who has that may come with the next piece at once
                _answer(fds, result)
        finally:
            os._exit(0)

    def _result(self, message: wire.Message) -> dict[str, Any]:
        try:
            return self._work(message["work"], message["with"])
        except (OSError, transfer.Refused) as error:
            return {"error": transfer.describe(error)}


def _answer(fds: Sequence[int], result: dict[str, Any]) -> None:
    for fd in fds:
        with socket.socket(fileno=fd) as sock, contextlib.suppress(OSError):  # nobody may wait for it any more
            wire.send(sock, result)


def _said_something(sock: socket.socket) -> bool:
    try:
        return bool(sock.recv(1))
    except OSError:
        return False
