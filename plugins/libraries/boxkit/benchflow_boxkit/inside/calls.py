"""What the host asks of every supervisor: start programs and carry their streams, move files, reach ports.

A supervisor adds calls of its own; `do_NAME` answers the call NAME.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from benchflow_boxkit.inside import launch, passing, processes, pumps, users, wire
from benchflow_boxkit.inside.filecalls import FAILURES, FileCalls
from benchflow_boxkit.inside.polling import Polling

_KILL_SECONDS: Final = 10.0
_DIAL_SECONDS: Final = 5.0
_PATIENT_ROUNDS: Final = 3
_ALL_ROUNDS: Final = 40
Find = Callable[[], list[processes.Entry]]


class Job:
    """One program asked for. `whole`: its output ends with it, whoever else holds the pipes."""

    def __init__(self, running: launch.RunningProgram, whole: bool) -> None:
        self.running, self.whole, self.told = running, whole, False


class Calls(FileCalls):
    def __init__(self, loop: Polling) -> None:
        super().__init__(loop)
        self.jobs: dict[int, Job] = {}
        self.stopped: list[int] = []
        self.accepted = wire.ACCEPTED
        self.null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)

    # --- what a supervisor may know better ---------------------------------------------------------------------------

    def isolation(self, message: wire.Message) -> Callable[[], launch.ProgramIsolation] | None:
        """Return what makes the isolation of the program that is asked for."""
        return None

    def box_processes(self) -> list[processes.Entry]:
        """Return what runs in this box: all that came from us, since we are the reaper of everything we start."""
        return processes.descendants(os.getpid())

    def user(self, name: str | None) -> users.User | None:
        """Return the user that a program is to run as."""
        return users.find(name)

    def limits_hit(self) -> dict[str, int]:
        """Return how often each limit of the box was hit, as far as it can be seen from inside."""
        return processes.limits_hit()

    def call(self, number: int, body: bytes) -> None:
        message = wire.parse(body)
        given = message["given"] = [self.loop.passed.popleft() for _ in range(message.get("descriptors", 0))]
        try:
            answer = getattr(self, "do_" + message["op"])(number, message)
        except FAILURES as error:
            answer = wire.failure(error)
        finally:
            passing.close(given)
        data = (answer or {}).pop("data", b"")
        self.loop.send(wire.message(wire.ANSWER, number, answer or {}, data))

    # --- programs ------------------------------------------------------------------------------------------------

    def do_exec(self, number: int, message: wire.Message) -> wire.Message:
        user = self.user(message["user"])
        if user is None:
            return {"no_user": message["user"]}
        if not self.switches_users and user.uid != 0:
            return {"single_user": message["user"]}
        program = self.program(message, user)
        pipes = [os.pipe() for _ in range(3 if message["stdin"] else 2)]
        outs = pipes[-2:]
        given = [pipes[0][0] if message["stdin"] else self.null, outs[0][1], outs[1][1]]
        try:
            pid = self.start(number, program, given, bool(message["whole"]))
        except BaseException:
            for fd in {fd for pair in pipes for fd in pair} - set(given):
                os.close(fd)
            raise
        finally:
            for fd in set(given) - {self.null}:
                os.close(fd)
        if message["stdin"]:
            pumps.Incoming(self.loop, number, pipes[0][1])
        pumps.Outgoing(self.loop, number + 1, outs[0][0])
        pumps.Outgoing(self.loop, number + 2, outs[1][0])
        return {"pid": pid}

    def program(self, message: wire.Message, user: users.User) -> launch.Program:
        env = {"PATH": launch.DEFAULT_PATH, "HOME": user.home, "USER": user.name, "LOGNAME": user.name}
        wanted = user if self.switches_users else None
        return launch.Program(message["argv"], env | message["env"], message["cwd"], wanted, self.isolation(message))

    def start(self, number: int, program: launch.Program, streams: list[int], whole: bool) -> int:
        """Start a program below a keeper, and return its process id."""
        running = launch.start(program, streams)
        self.loop.own.add(running.keeper)
        self.jobs[number] = Job(running, whole)
        self.loop.watch(running.status, 1, lambda _: self.read_exit_status(number))
        return running.pid

    def read_exit_status(self, number: int) -> None:
        """Read what a keeper says: how its program ended, or that nothing is left of it."""
        job = self.jobs.get(number)
        if job is None:
            return
        try:
            data = os.read(job.running.status, launch.STATUS.size)
        except BlockingIOError:
            return
        if not job.told:
            job.told = True
            self.tell_exit(number, job.whole, launch.STATUS.unpack(data)[0] if data else -signal.SIGKILL)
        if not data:
            self.loop.unwatch(job.running.status)
            os.close(job.running.status)
            del self.jobs[number]

    def tell_exit(self, number: int, whole: bool, code: int) -> None:
        if whole:
            for stream in (number + 1, number + 2):
                if outgoing := self.loop.outgoing.get(stream):
                    outgoing.flush()
        event = {"event": "exit", "exec": number, "code": code, "limits": self.limits_hit()}
        self.loop.send(wire.message(wire.EVENT, 0, event))

    def do_kill(self, number: int, message: wire.Message) -> None:
        """End a program and everything that came from it; answered when they are gone."""
        wanted = int(message["exec"])
        rounds = _Rounds()
        while (find := self.tree(wanted)) is not None:
            found = self.kill_processes(find, rounds.count)
            self.collect(wanted)
            rounds.another(found)

    def tree(self, number: int) -> Find | None:
        """Return what finds a program and everything that came from it; None when nothing is left of it."""
        job = self.jobs.get(number)
        return None if job is None else partial(processes.descendants, job.running.keeper)

    def collect(self, number: int) -> None:
        """Take note of what ended of a program."""
        if number in self.jobs:
            send_signal(self.jobs[number].running.keeper, signal.SIGCONT)
        self.loop.reap()
        self.read_exit_status(number)

    def kill_processes(self, find: Find, rounds: int) -> list[processes.Entry]:
        """Kill what is found. Where something forks as fast as we kill, everything stands still first."""
        found = find()
        if rounds > _PATIENT_ROUNDS:
            self.halt(found)
            found = find()
        for entry in found:
            send_signal(entry.pid, signal.SIGKILL)
        return found

    def halt(self, entries: list[processes.Entry]) -> None:
        for entry in entries:
            send_signal(entry.pid, signal.SIGSTOP)

    def halt_all(self, running: list[processes.Entry]) -> None:
        self.halt(running)

    def ours(self) -> list[processes.Entry]:
        """What the box runs beyond what we need ourselves."""
        return [entry for entry in self.box_processes() if entry.pid not in self.loop.own]

    def do_processes(self, number: int, message: wire.Message) -> wire.Message:
        self.loop.reap()
        return {"pids": sorted(entry.pid for entry in self.ours())}

    def do_kill_all(self, number: int, message: wire.Message) -> None:
        rounds = _Rounds()
        while left := self.ours():
            self.kill_everything(rounds.count)
            for job in self.jobs.values():
                send_signal(job.running.keeper, signal.SIGCONT)
            self.loop.reap()
            rounds.another(left)
        for running in list(self.jobs):
            while running in self.jobs:
                self.read_exit_status(running)
                rounds.another(())

    def kill_everything(self, rounds: int) -> None:
        self.kill_processes(self.ours, rounds)

    def do_freeze(self, number: int, message: wire.Message) -> None:
        """Stop everything, our own workers included, for a consistent copy of the files."""
        already = {entry.pid for entry in self.box_processes() if entry.state == "T"}
        deadline = time.monotonic() + _KILL_SECONDS
        while True:
            now = self.box_processes()
            self.stopped = [entry.pid for entry in now if entry.pid not in already]
            running = [e for e in now if e.state not in "Tt" and not (e.state == "D" and processes.in_vfork(e.pid))]
            if not running:
                return
            self.halt_all(running)
            if time.monotonic() > deadline:
                self.do_thaw(number, message)
                raise TimeoutError(errno.ETIMEDOUT, "processes do not stop")
            time.sleep(0.0005)

    def do_thaw(self, number: int, message: wire.Message) -> None:
        for pid in self.stopped:
            send_signal(pid, signal.SIGCONT)
        self.stopped = []

    # --- ports -----------------------------------------------------------------------------------------------------

    def do_listening(self, number: int, message: wire.Message) -> wire.Message:
        return {"ports": processes.listening()}

    def do_listen(self, number: int, message: wire.Message) -> wire.Message:
        listener = socket.create_server(("127.0.0.1", message["port"]), backlog=256)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what it accepts inherits it
        listener.setblocking(False)
        port = listener.getsockname()[1]

        def accept(_: int) -> None:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                connection, _address = listener.accept()
                self.accepted += 1
                pumps.connect(self.loop, self.accepted, connection)
                event = {"event": "accept", "port": port, "stream": self.accepted}
                self.loop.send(wire.message(wire.EVENT, 0, event))

        self.loop.watch(listener.fileno(), 1, accept)
        return {"port": port}

    def do_dial(self, number: int, message: wire.Message) -> None:
        failure: OSError | None = None
        for host in ("127.0.0.1", "::1"):
            try:
                connection = socket.create_connection((host, message["port"]), timeout=_DIAL_SECONDS)
            except OSError as error:
                failure = failure or error
                continue
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pumps.connect(self.loop, number, connection)
            return
        raise failure or OSError(errno.ECONNREFUSED, "connection refused")


class FirstProcess(Calls):
    """The first process of a box's process namespace: it sees everything that runs there, and ends it in one call."""

    def box_processes(self) -> list[processes.Entry]:
        return processes.alive()

    def kill_processes(self, find: Find, rounds: int) -> list[processes.Entry]:
        found = super().kill_processes(find, rounds)
        if rounds > _ALL_ROUNDS:  # forks faster than we can look: nothing in the box survives this one
            send_signal(-1, signal.SIGKILL)
        return found

    def kill_everything(self, rounds: int) -> None:
        send_signal(-1, signal.SIGKILL)  # in one call, so that nothing can fork away from it

    def halt_all(self, running: list[processes.Entry]) -> None:
        send_signal(-1, signal.SIGSTOP)


def send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class _Rounds:
    """Tries again, ever more slowly, and not for ever.

    Only those that met new processes count: a large one takes a while to be gone, and is not forking meanwhile.
    """

    def __init__(self) -> None:
        self.count = self._looks = 0
        self._met: set[int] = set()
        self._deadline = time.monotonic() + _KILL_SECONDS

    def another(self, found: Iterable[processes.Entry]) -> None:
        new = {entry.pid for entry in found} - self._met
        self._met |= new
        self.count += bool(new)
        self._looks += 1
        if time.monotonic() > self._deadline:
            raise TimeoutError(errno.ETIMEDOUT, "processes do not end")
        time.sleep(0.0005 * min(self._looks, 20))
