"""What the first process of every box is: a loop that answers its owner and reaps children, and ends with its owner."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable

from benchflow_sandbox_local.helper import transfer, wire

Answer = tuple[wire.Message, list[int]]
"""An answer, and descriptors that travel with it."""


class Service:
    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self.workers: set[int] = set()
        self.frozen = False
        self._held: list[tuple[wire.Message, list[int]]] = []
        self._wake_read, self._wake_write = os.pipe()

    def serve(self) -> None:
        """Raises `EOFError` when the owner is gone."""
        for fd in (self._wake_read, self._wake_write):
            os.set_blocking(fd, False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # for PID 1 that means: ignored
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                    self.reap()
                else:
                    self._handle(*wire.receive(self.control))

    def _handle(self, message: wire.Message, fds: list[int]) -> None:
        if self.frozen and message["op"] != "thaw":
            self._held.append((message, fds))
            return
        self._answer(message, fds)
        while self._held and not self.frozen:
            self._answer(*self._held.pop(0))

    def _answer(self, message: wire.Message, fds: list[int]) -> None:
        answer: wire.Message = {"id": message["id"]}
        out: list[int] = []
        try:
            result, out = getattr(self, "do_" + message["op"])(message, fds)
            answer.update(result)
        except (OSError, ValueError, transfer.Refused) as error:
            answer["error"] = transfer.describe(error)
        finally:
            wire.close_fds(fds)
        wire.send(self.control, answer, out)
        wire.close_fds(out)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.workers.discard(pid)
            self.ended(pid, os.waitstatus_to_exitcode(status))

    def ended(self, pid: int, code: int) -> None:
        """A child, or an orphan of the box, is gone."""

    def fork(self) -> int:
        return os.fork()

    def worker(self, work: Callable[[socket.socket], None], fds: list[int]) -> Answer:
        """Longer work in a process of its own, so that it keeps nobody waiting. It talks on `fds[0]`."""
        pid = self.fork()
        if pid:
            self.workers.add(pid)
            return {}, []
        code = 1
        try:
            self.control.close()
            with socket.socket(fileno=fds[0]) as sock:
                try:
                    work(sock)
                except (OSError, ValueError, transfer.Refused) as error:
                    wire.send(sock, {"error": transfer.describe(error)})
            code = 0
        finally:
            os._exit(code)
