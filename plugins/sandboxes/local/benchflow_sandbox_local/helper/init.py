"""The first process of a box: starts programs, reaps orphans, ends process trees, and ends when its owner does.

It stands inside the box's namespaces, so every path and port it touches is the box's own. Programs cannot signal it
(it is PID 1), trace it (it holds more capabilities than they do) or read its memory (it is not dumpable).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from benchflow_boxkit.inside import launch, processes, system, wire
from benchflow_boxkit.inside.calls import Find, FirstProcess
from benchflow_boxkit.inside.polling import DirectLoop
from benchflow_boxkit.inside.view import View

from benchflow_sandbox_local.helper import linux
from benchflow_sandbox_local.helper.isolation import ConfinedProgram, Confinement

_OWN_NAMESPACE: Final = "/proc/self/ns/uts"


class MarkedProgram:
    """One program asked for. Its UTS namespace marks all its descendants: they cannot leave it or make another.

    Where `whole` is false the mark is kept after the program ended, so that what it left can still be ended.
    `namespace` is a descriptor: as long as it is open the kernel gives the mark to nobody else.
    """

    def __init__(self, pid: int, whole: bool, namespace: int) -> None:
        self.pid, self.whole, self.namespace = pid, whole, namespace
        self.mark = os.fstat(namespace).st_ino
        self.keep = not whole


class Init(FirstProcess):
    def __init__(self, control: int, confinement: Confinement) -> None:
        super().__init__(DirectLoop(self.call, control, control))
        self.loop.ended = self.ended
        self.confinement, self.switches_users = confinement, not confinement.single_user
        self.marked: dict[int, MarkedProgram] = {}
        self.by_pid: dict[int, int] = {}

    def limits_hit(self) -> dict[str, int]:
        """Return nothing: the host counts, since no control group is seen from here."""
        return {}

    def isolation(self, message: wire.Message) -> Callable[[], ConfinedProgram]:
        wanted = View(**message["view"]) if message["view"] else None
        return partial(ConfinedProgram, self.confinement, wanted)

    def start(self, number: int, program: launch.Program, streams: list[int], whole: bool) -> int:
        """Start a program with a mark instead of a keeper, which would take a second fork."""
        isolation = program.isolation() if program.isolation else None
        system.unshare(linux.CLONE_NEWUTS)
        namespace = os.open(_OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        pid = linux.clone()
        if pid == 0:
            launch.become_program(program, streams, isolation)
        if isolation is not None:
            isolation.admit(pid)
        self.marked[number] = MarkedProgram(pid, whole, namespace)
        self.by_pid[pid] = number
        return pid

    def ended(self, pid: int, code: int) -> None:
        number = self.by_pid.pop(pid, None)
        if number is None:
            return
        marked = self.marked[number]
        if not marked.keep:
            self.forget(number)
        self.tell_exit(number, marked.whole, code)

    def forget(self, number: int) -> None:
        os.close(self.marked.pop(number).namespace)

    def do_kill(self, number: int, message: wire.Message) -> None:
        if marked := self.marked.get(int(message["exec"])):
            marked.keep = True
            super().do_kill(number, message)

    def collect(self, number: int) -> None:
        self.loop.reap()

    def tree(self, number: int) -> Find | None:
        """A process that is ending has left its namespaces before it can be reaped: it counts until it was."""
        marked = self.marked.get(number)
        if marked is None:
            return None
        if marked.pid not in self.by_pid and not self._members(marked):
            self.loop.reap()
            self.forget(number)
            return None
        return partial(self._members, marked)

    def _members(self, marked: MarkedProgram) -> list[processes.Entry]:
        """Return a program and everything that came from it."""
        found: list[int] = []
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"):
            if pid in self.loop.own:
                continue
            if pid in self.by_pid:  # started by us, and unreadable until it has become its program
                if self.marked[self.by_pid[pid]] is marked:
                    found.append(pid)
                continue
            try:
                if os.stat(f"/proc/{pid}/ns/uts").st_ino == marked.mark:
                    found.append(pid)
            except PermissionError:
                found.append(pid)  # one that hides from us is not spared
            except OSError:
                continue
        return [processes.Entry(pid, 1, "") for pid in found]


def main(control: socket.socket, confinement: Confinement) -> None:
    """Serve until the owner's end closes. PID 1 ending ends the box."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # for PID 1 that means: ignored
    try:
        Init(control.detach(), confinement).loop.serve()
    except (EOFError, ConnectionError):
        os._exit(0)
    except BaseException as error:
        print(f"the box's first process failed: {error!r}", file=sys.stderr)
        os._exit(1)
