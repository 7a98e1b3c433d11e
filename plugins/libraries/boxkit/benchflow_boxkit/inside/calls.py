"""What the host asks of every supervisor: start programs and carry their streams, move files, reach ports.

A supervisor adds calls of its own; `do_NAME` answers the call NAME.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Protocol

from benchflow_boxkit.inside import launch, processes, pumps, sending, system, users, wire
from benchflow_boxkit.inside.polling import Polling
from benchflow_boxkit.inside.receiving import Placement, Receiver

_KILL_SECONDS: Final = 10.0
_DIAL_SECONDS: Final = 5.0
_PATIENT_ROUNDS: Final = 3
Find = Callable[[], list[processes.Entry]]


class Taker(Protocol):
    """What is fed with a transfer."""

    @property
    def done(self) -> bool: ...

    def feed(self, data: bytes) -> None: ...


class Job:
    """One program asked for. `whole`: its output ends with it, whoever else holds the pipes."""

    def __init__(self, kept: launch.Kept, whole: bool) -> None:
        self.kept, self.whole, self.told = kept, whole, False


class Calls:
    def __init__(self, loop: Polling) -> None:
        self.loop = loop
        self.jobs: dict[int, Job] = {}
        self.stopped: list[int] = []
        self.accepted = wire.ACCEPTED
        self.null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)

    def walls(self, message: wire.Message) -> Callable[[], launch.Walls] | None:
        """Around the program that is asked for."""
        return None

    def here(self) -> list[processes.Entry]:
        """What runs in this box: all that came from us, since we are the reaper of everything we start."""
        return processes.descendants(os.getpid())

    def call(self, number: int, body: bytes) -> None:
        message = json.loads(body)
        try:
            answer = getattr(self, "do_" + message["op"])(number, message)
        except (OSError, wire.Refused) as error:
            answer = {"error": wire.describe(error)}
        self.loop.send(wire.message(wire.ANSWER, number, answer or {}))

    # --- programs ------------------------------------------------------------------------------------------------

    def do_exec(self, number: int, message: wire.Message) -> wire.Message:
        user = users.find(message["user"])
        if user is None:
            return {"no_user": message["user"]}
        env = {"PATH": launch.DEFAULT_PATH, "HOME": user.home, "USER": user.name, "LOGNAME": user.name}
        program = launch.Program(message["argv"], env | message["env"], message["cwd"], user, self.walls(message))
        pipes = [os.pipe() for _ in range(3 if message["stdin"] else 2)]
        outs = pipes[-2:]
        given = [pipes[0][0] if message["stdin"] else self.null, outs[0][1], outs[1][1]]
        try:
            kept = launch.start(program, given)
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
        self.loop.own.add(kept.keeper)
        self.jobs[number] = Job(kept, bool(message["whole"]))
        self.loop.watch(kept.status, 1, lambda _: self.hear(number))
        return {"pid": kept.pid}

    def hear(self, number: int) -> None:
        """A keeper says how its program ended, or that nothing is left of it."""
        job = self.jobs.get(number)
        if job is None:
            return
        try:
            data = os.read(job.kept.status, launch.STATUS.size)
        except BlockingIOError:
            return
        if not job.told:
            job.told = True
            self.tell_exit(number, job, launch.STATUS.unpack(data)[0] if data else -signal.SIGKILL)
        if not data:
            self.loop.unwatch(job.kept.status)
            os.close(job.kept.status)
            del self.jobs[number]

    def tell_exit(self, number: int, job: Job, code: int) -> None:
        if job.whole:
            for stream in (number + 1, number + 2):
                if outgoing := self.loop.outgoing.get(stream):
                    outgoing.flush()
        event = {"event": "exit", "exec": number, "code": code, "limits": processes.limits_hit()}
        self.loop.send(wire.message(wire.EVENT, 0, event))

    def do_kill(self, number: int, message: wire.Message) -> None:
        """End a program and everything that came from it; answered when they are gone."""
        wanted = int(message["exec"])
        rounds = _Rounds()
        while (job := self.jobs.get(wanted)) is not None:
            self.strike(partial(processes.descendants, job.kept.keeper), rounds.count)
            send_signal(job.kept.keeper, signal.SIGCONT)
            self.loop.reap()
            self.hear(wanted)
            rounds.another()

    def strike(self, find: Find, rounds: int) -> None:
        """Kill what is found. Where something forks as fast as we kill, everything stands still first."""
        found = find()
        if rounds > _PATIENT_ROUNDS:
            self.halt(found)
            found = find()
        for entry in found:
            send_signal(entry.pid, signal.SIGKILL)

    def halt(self, entries: list[processes.Entry]) -> None:
        for entry in entries:
            send_signal(entry.pid, signal.SIGSTOP)

    def halt_all(self, running: list[processes.Entry]) -> None:
        self.halt(running)

    def ours(self) -> list[processes.Entry]:
        """What the box runs beyond what we need ourselves."""
        return [entry for entry in self.here() if entry.pid not in self.loop.own]

    def do_processes(self, number: int, message: wire.Message) -> wire.Message:
        self.loop.reap()
        return {"pids": sorted(entry.pid for entry in self.ours())}

    def do_kill_all(self, number: int, message: wire.Message) -> None:
        rounds = _Rounds()
        while self.ours():
            self.strike_all(rounds.count)
            for job in self.jobs.values():
                send_signal(job.kept.keeper, signal.SIGCONT)
            self.loop.reap()
            rounds.another()
        for running in list(self.jobs):
            while running in self.jobs:
                self.hear(running)
                rounds.another()

    def strike_all(self, rounds: int) -> None:
        self.strike(self.ours, rounds)

    def do_freeze(self, number: int, message: wire.Message) -> None:
        """Stop everything, our own workers included, for a consistent copy of the files."""
        already = {entry.pid for entry in self.here() if entry.state == "T"}
        deadline = time.monotonic() + _KILL_SECONDS
        while True:
            now = self.here()
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

    # --- files -----------------------------------------------------------------------------------------------------

    def do_put(self, number: int, message: wire.Message) -> wire.Message:
        make = receiver_for(message)
        if make is None:
            return {"no_user": message["user"]}
        self.take(number, make)
        return {}

    def do_get(self, number: int, message: wire.Message) -> wire.Message:
        limits = sending.Limits(**message["limits"])
        self.give(number, sending.records(message["source"], limits, links=bool(message["links"])))
        return {}

    def take(self, number: int, make: Callable[[], Taker]) -> None:
        """A worker writes what comes on stream `number`, and says on the next how it went."""
        read, write = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, wire.WINDOW)
        self.take_from(read, number, make)
        pumps.Incoming(self.loop, number, write)

    def take_from(self, source: int, number: int, make: Callable[[], Taker]) -> None:
        result, told = os.pipe()

        def work() -> None:
            try:
                receiver = make()
                while not receiver.done and (data := os.read(source, 1 << 18)):
                    receiver.feed(data)
                answer = {} if receiver.done else {"error": wire.describe(wire.Refused("the transfer was cut short"))}
            except (OSError, wire.Refused, ValueError, TypeError) as error:
                answer = {"error": wire.describe(error)}
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


def receiver_for(message: wire.Message) -> Callable[[], Receiver] | None:
    """What writes an upload; nothing where its user is not known."""
    user, target = users.find(message["user"]), message["target"]
    if user is None:
        return None
    owners = bool(message.get("owners"))
    place = Placement(-1, -1, message["mode"]) if owners else Placement(user.uid, user.gid, message["mode"])

    def receiver() -> Receiver:
        os.makedirs(os.path.dirname(target) or "/", exist_ok=True)
        return Receiver(target, None, place)

    return receiver


def send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class _Rounds:
    """Tries again, ever more slowly, and not for ever."""

    def __init__(self) -> None:
        self.count, self._deadline = 0, time.monotonic() + _KILL_SECONDS

    def another(self) -> None:
        self.count += 1
        if time.monotonic() > self._deadline:
            raise TimeoutError(errno.ETIMEDOUT, "processes do not end")
        time.sleep(0.0005 * min(self.count, 20))
