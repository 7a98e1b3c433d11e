"""The first process of a box: starts programs, reaps orphans, ends process trees, and ends when its owner does.

It stands inside the box's namespaces, so every path and port it touches is the box's own. Programs cannot signal it
(it is PID 1), trace it (it holds more capabilities than they do) or read its memory (it is not dumpable).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import sys
import time
from typing import Final

from benchflow_sandbox_local.helper import launch, linux, users, view, wire
from benchflow_sandbox_local.helper.boxfiles import Files
from benchflow_sandbox_local.helper.boxports import Ports
from benchflow_sandbox_local.helper.service import Answer

_KILL_SECONDS: Final = 10.0
_FORKS: Final = {"x86_64": (b"56", b"58"), "aarch64": (b"220",)}.get(linux.MACHINE, ())
_ROUNDS: Final = 40
_OWN_NAMESPACE: Final = "/proc/self/ns/uts"


class Running:
    """One program asked for. Its UTS namespace marks all its descendants: they cannot leave it or make another.

    `keep`: the mark is kept after the program ended, so that what it left can still be ended. `namespace` is a
    descriptor: as long as it is open the kernel gives the mark to nobody else.
    """

    def __init__(self, pid: int, keep: bool, namespace: int = -1, mark: int = 0) -> None:
        self.pid, self.keep, self.namespace, self.mark = pid, keep, namespace, mark


class Init(Files, Ports):
    def __init__(self, control: socket.socket, confinement: launch.Confinement) -> None:
        super().__init__(control)
        self.confinement, self.single_user = confinement, confinement.single_user
        self.running: dict[int, Running] = {}
        self.by_pid: dict[int, int] = {}
        self.stopped: list[int] = []

    def fork(self) -> int:
        return linux.clone()

    # --- programs ------------------------------------------------------------------------------------------------

    def do_exec(self, message: wire.Message, fds: list[int]) -> Answer:
        user = self.user(message["user"])
        if user is None:
            return {"no_user": message["user"]}, []
        if self.single_user and user.uid != 0:
            return {"single_user": message["user"]}, []
        env = {"PATH": launch.DEFAULT_PATH, "HOME": user.home, "USER": user.name, "LOGNAME": user.name}
        program = launch.Program(message["argv"], env | message["env"], message["cwd"], user)
        given = iter(fds)
        streams = [next(given) if wanted else self.null for wanted in message["streams"]]
        running = self.run_program(program, streams, message["view"], bool(message["keep"]))
        self.running[message["id"]] = running
        self.by_pid[running.pid] = message["id"]
        return {"pid": running.pid}, []

    def user(self, name: str | None) -> users.User | None:
        return users.find(name)

    def run_program(
        self, program: launch.Program, streams: list[int], wanted: dict[str, list[str]] | None, keep: bool
    ) -> Running:
        gate = view.Gate(wanted, single_user=self.single_user) if wanted else None
        linux.unshare(linux.CLONE_NEWUTS)
        namespace = os.open(_OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        pid = linux.clone()
        if pid == 0:
            launch.run(program, self.confinement, streams, gate)
        if gate:
            gate.open_for(pid)
        return Running(pid, keep, namespace, os.fstat(namespace).st_ino)

    def ended(self, pid: int, code: int) -> None:
        number = self.by_pid.pop(pid, None)
        if number is None:
            return
        running = self.running.get(number)
        if running and not running.keep:
            self.forget(number)
        wire.send(self.control, {"event": "exit", "exec": number, "code": code})

    def forget(self, number: int) -> None:
        running = self.running.pop(number, None)
        if running and running.namespace >= 0:
            os.close(running.namespace)

    def do_kill(self, message: wire.Message, fds: list[int]) -> Answer:
        """End a program and all its descendants; answered when they are gone."""
        running = self.running.get(message["exec"])
        if running is None:
            return {}, []
        running.keep = True
        deadline = time.monotonic() + _KILL_SECONDS
        rounds, looks = 0, 0
        met: set[int] = set()
        # A process that is ending has left its namespaces before it can be reaped: it counts until it was.
        while (found := self.tree(running)) or running.pid in self.by_pid:
            looks += 1
            # Only new ones count: a large process takes a while to be gone, and is not forking meanwhile.
            rounds += not met.issuperset(found)
            met.update(found)
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if rounds > _ROUNDS:  # forks faster than we can look: nothing in the box survives this one
                self.kill_everything()
            self.reap()
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, f"{len(found)} processes do not end")
            time.sleep(0.0005 * min(looks, 20))
        self.reap()
        self.forget(message["exec"])
        return {}, []

    def tree(self, running: Running) -> list[int]:
        """A program and everything that came from it."""
        found = []
        for pid in _pids():
            if pid in self.workers:
                continue
            if pid in self.by_pid:  # started by us, and unreadable until it has become its program
                if self.running.get(self.by_pid[pid]) is running:
                    found.append(pid)
                continue
            try:
                if os.stat(f"/proc/{pid}/ns/uts").st_ino == running.mark:
                    found.append(pid)
            except PermissionError:
                found.append(pid)  # one that hides from us is not spared
            except OSError:
                continue
        return found

    def do_processes(self, message: wire.Message, fds: list[int]) -> Answer:
        self.reap()
        return {"pids": sorted(pid for pid, _ in self.alive() if pid not in self.workers)}, []

    def do_kill_all(self, message: wire.Message, fds: list[int]) -> Answer:
        deadline = time.monotonic() + _KILL_SECONDS
        while True:
            self.kill_everything()
            self.reap()
            if not (left := self.alive()):
                return {}, []
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, f"{len(left)} processes do not end")
            time.sleep(0.001)

    def kill_everything(self) -> None:
        """In one call, so that nothing can fork away from it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)

    def alive(self) -> list[tuple[int, str]]:
        """Everything that runs in the box but ourselves: process id and state."""
        found = []
        for pid in _pids():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
                state = chr(file.read().rpartition(b") ")[2][0])
                if state not in "ZX":
                    found.append((pid, state))
        return found

    # --- freezing ------------------------------------------------------------------------------------------------

    def do_freeze(self, message: wire.Message, fds: list[int]) -> Answer:
        """Stop every program for a consistent copy of the files; whatever is asked meanwhile waits for the thaw."""
        already = {pid for pid, state in self.alive() if state == "T"}
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGSTOP)
        deadline = time.monotonic() + _KILL_SECONDS
        while True:
            now = self.alive()
            self.stopped = [pid for pid, _ in now if pid not in already]
            busy = [pid for pid, state in now if state not in "Tt" and not (state == "D" and _in_vfork(pid))]
            if not busy:
                self.frozen = True
                return {}, []
            if time.monotonic() > deadline:
                self.do_thaw(message, fds)
                raise TimeoutError(errno.ETIMEDOUT, f"{len(busy)} processes do not stop")
            time.sleep(0.0005)

    def do_thaw(self, message: wire.Message, fds: list[int]) -> Answer:
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped, self.frozen = [], False
        return {}, []


def _in_vfork(pid: int) -> bool:
    """It waits, and cannot be stopped, for a child that stands still: so it does nothing either."""
    try:
        with open(f"/proc/{pid}/syscall", "rb") as file:
            return file.read().split()[0] in _FORKS
    except (OSError, IndexError):
        return False


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def main(control: socket.socket, confinement: launch.Confinement) -> None:
    """Serve until the owner's end closes. PID 1 ending ends the box."""
    try:
        Init(control, confinement).serve()
    except (EOFError, ConnectionError):
        os._exit(0)
    except BaseException as error:
        print(f"the box's first process failed: {error!r}", file=sys.stderr)
        os._exit(1)
