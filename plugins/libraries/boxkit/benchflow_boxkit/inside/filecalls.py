"""What the host asks of every supervisor about files. Longer work is done by processes of their own."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from benchflow_boxkit.inside import passing, pumps, sending, system, users, wire
from benchflow_boxkit.inside.polling import Polling
from benchflow_boxkit.inside.receiving import Placement, Receiver

FAILURES: Final = (OSError, ValueError, TypeError, wire.Refused)
"""Of a call, which are answered; anything else is a defect of ours and ends the supervisor."""
_CUT_SHORT: Final = "the transfer was cut short"


class TransferSink(Protocol):
    """What is fed with a transfer."""

    @property
    def done(self) -> bool: ...

    def feed(self, data: bytes, descriptors: Sequence[int] = ()) -> None: ...


class FileCalls:
    switches_users = True
    """Whether programs and files can be given to other users than the supervisor's own."""

    def __init__(self, loop: Polling) -> None:
        self.loop = loop

    def path(self, path: str) -> str:
        """Return where a path of the box is, for this process."""
        return path

    def receiver(self, message: wire.Message) -> Callable[[], Receiver] | None:
        """Return what makes the writer of an upload; nothing where its user is not known."""
        user, target = users.find(message["user"]), self.path(message["target"])
        if user is None:
            return None
        place = Placement(user.uid, user.gid, message["mode"])
        if message.get("owners"):
            place = Placement(-1, -1, message["mode"])
        elif not self.switches_users:
            place = Placement(None, None, message["mode"])

        def make() -> Receiver:
            os.makedirs(os.path.dirname(target) or "/", exist_ok=True)
            return Receiver(target, None, place)

        return make

    def do_put(self, number: int, message: wire.Message) -> wire.Message:
        """Write the transfer that comes on stream `number`, or on a socket that came with the call."""
        make = self.receiver(message)
        if make is None:
            return {"no_user": message["user"]}
        if message["given"]:
            self.take_from(message["given"].pop(), number, make)
        else:
            self.take(number, make)
        return {}

    def do_put_now(self, number: int, message: wire.Message) -> wire.Message:
        """Write a small transfer, which came with the call."""
        make = self.receiver(message)
        if make is None:
            return {"no_user": message["user"]}
        receiver = make()
        try:
            receiver.feed(message["data"])
        finally:
            receiver.close()
        return {} if receiver.done else wire.failure(wire.Refused(_CUT_SHORT))

    def do_get(self, number: int, message: wire.Message) -> wire.Message:
        """Send files on stream `number`, or on a socket that came with the call."""
        limits, source, links = sending.Limits(**message["limits"]), self.path(message["source"]), message["links"]
        if not message["given"]:
            self.give(number, sending.records(source, limits, links=links))
            return {}
        descriptor = message["given"].pop()

        def work() -> None:
            with socket.socket(fileno=descriptor) as sock:
                passing.send(sock, sending.passed_records(source, limits, links=links))

        self.worker(work, {descriptor})
        return {}

    def do_get_now(self, number: int, message: wire.Message) -> wire.Message:
        """Send what is small with the answer."""
        limits, source = sending.Limits(**message["limits"]), self.path(message["source"])
        found = sending.batch(sending.records(source, limits, links=message["links"]), wire.INLINE)
        return {"data": found} if len(found) < wire.INLINE else {"large": True}

    def take(self, number: int, make: Callable[[], TransferSink]) -> None:
        """A worker writes what comes on stream `number`, and says on the next how it went."""
        read, write = os.pipe()
        with contextlib.suppress(OSError, AttributeError):  # there is no such thing beyond Linux
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, wire.WINDOW)
        self.take_from(read, number, make)
        pumps.Incoming(self.loop, number, write)

    def take_from(self, source: int, number: int, make: Callable[[], TransferSink]) -> None:
        result, told = os.pipe()

        def work() -> None:
            try:
                sink, read = make(), passing.reader(source)
                while not sink.done:
                    data, passed = read()
                    if not data:
                        break
                    sink.feed(data, passed)
                answer = {} if sink.done else wire.failure(wire.Refused(_CUT_SHORT))
            except FAILURES as error:
                answer = wire.failure(error)
            os.write(told, json.dumps(answer).encode())

        self.worker(work, {source, told})
        pumps.Outgoing(self.loop, number + 1, result)

    def give(self, number: int, source: Iterator[bytes]) -> None:
        """A worker sends files on stream `number`."""
        read, write = os.pipe()

        def work() -> None:
            with open(write, "wb", buffering=1 << 16) as out:
                for part in source:
                    out.write(part)

        self.worker(work, {write})
        pumps.Outgoing(self.loop, number, read)

    def worker(self, work: Callable[[], None], keep: set[int]) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                system.close_except({2, *keep})
                with contextlib.suppress(OSError):
                    work()
            finally:
                os._exit(0)
        self.loop.own.add(pid)
        for fd in keep:
            os.close(fd)
