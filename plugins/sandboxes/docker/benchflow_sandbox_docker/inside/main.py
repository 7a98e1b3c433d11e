"""The first process of a box. It starts programs, carries their streams, moves files, and ends when its owner does.

Programs cannot signal it (it is PID 1 and has no handler they could use), trace it or read its memory (it is not
dumpable, and nobody in the box may trace what is not), and it runs from a read-only mount of our own.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

from benchflow_sandbox_docker.inside import launch, processes, pumps, revert, sending, state, system, users, wire
from benchflow_sandbox_docker.inside.loop import Loop
from benchflow_sandbox_docker.inside.receiving import Placement, Receiver

_KILL_SECONDS: Final = 10.0
_ROUNDS: Final = 40
_DIAL_SECONDS: Final = 5.0


class Job:
    """One program asked for. `whole`: its output ends with it, whoever else holds the pipes."""

    def __init__(self, kept: launch.Kept, whole: bool) -> None:
        self.kept, self.whole, self.told = kept, whole, False


class Supervisor:
    def __init__(self) -> None:
        self.loop = Loop(self.call)
        self.jobs: dict[int, Job] = {}
        self.stopped: list[int] = []
        self.accepted = wire.ACCEPTED
        self.null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)

    def call(self, number: int, body: bytes) -> None:
        message = json.loads(body)
        try:
            answer = getattr(self, "do_" + message["op"])(number, message)
        except (OSError, wire.Refused) as error:
            answer = {"error": wire.describe(error)}
        self.loop.send(wire.message(wire.ANSWER, number, answer or {}))

    # --- the box itself ------------------------------------------------------------------------------------------

    def do_setup(self, number: int, message: wire.Message) -> wire.Message:
        """Walls first, then what the box needs before anything runs in it."""
        for prefix in message["never"]:
            system.forbid(prefix, state.NEVER)
        for prefix in message["peers"]:
            system.permit(prefix, state.PEERS)
        state.forbid(message["forbidden"])
        if message["forbidden"]:
            state.permit_resolvers()
        if message["cut_off"]:
            state.cut_off(True)
        system.prctl(system.PR_CAPBSET_DROP, system.CAP_NET_ADMIN)
        state.remember()
        return {"users": users.names()}

    def do_begin(self, number: int, message: wire.Message) -> wire.Message:
        os.makedirs(message["workdir"], exist_ok=True)
        return {"users": users.names()}

    def do_network(self, number: int, message: wire.Message) -> None:
        state.forbid(message["forbidden"])
        state.cut_off(bool(message["cut_off"]))

    # --- programs ------------------------------------------------------------------------------------------------

    def do_exec(self, number: int, message: wire.Message) -> wire.Message:
        user = users.find(message["user"])
        if user is None:
            return {"no_user": message["user"]}
        env = {"PATH": launch.DEFAULT_PATH, "HOME": user.home, "USER": user.name, "LOGNAME": user.name}
        program = launch.Program(message["argv"], env | message["env"], message["cwd"], user)
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
        event = {"event": "exit", "exec": number, "code": code}
        if code in (-9, 137):
            event["oom_kills"] = processes.oom_kills()
        self.loop.send(wire.message(wire.EVENT, 0, event))

    def do_kill(self, number: int, message: wire.Message) -> None:
        """End a program and everything that came from it; answered when they are gone."""
        wanted = int(message["exec"])
        deadline, rounds = time.monotonic() + _KILL_SECONDS, 0
        while (job := self.jobs.get(wanted)) is not None:
            rounds += 1
            for pid in processes.descendants(job.kept.keeper):
                _signal(pid, signal.SIGKILL)
            _signal(job.kept.keeper, signal.SIGCONT)
            if rounds > _ROUNDS:  # forks faster than we can look: nothing in the box survives this one
                _signal(-1, signal.SIGKILL)
            self.loop.reap()
            self.hear(wanted)
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "processes do not end")
            time.sleep(0.0005 * min(rounds, 20))

    def do_processes(self, number: int, message: wire.Message) -> wire.Message:
        self.loop.reap()
        return {"pids": sorted(entry.pid for entry in processes.alive() if entry.pid not in self.loop.own)}

    def do_kill_all(self, number: int, message: wire.Message) -> None:
        deadline = time.monotonic() + _KILL_SECONDS
        while True:
            _signal(-1, signal.SIGKILL)  # in one call, so that nothing can fork away from it
            self.loop.reap()
            if not (left := processes.alive()):
                break
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, f"{len(left)} processes do not end")
            time.sleep(0.001)
        for job in list(self.jobs):
            while job in self.jobs:
                self.hear(job)

    def do_freeze(self, number: int, message: wire.Message) -> None:
        """Stop everything for a consistent copy of the files."""
        already = {entry.pid for entry in processes.alive() if entry.state == "T"}
        _signal(-1, signal.SIGSTOP)
        deadline = time.monotonic() + _KILL_SECONDS
        while True:
            now = processes.alive()
            self.stopped = [entry.pid for entry in now if entry.pid not in already]
            if not [e for e in now if e.state not in "Tt" and not (e.state == "D" and processes.in_vfork(e.pid))]:
                return
            if time.monotonic() > deadline:
                self.do_thaw(number, message)
                raise TimeoutError(errno.ETIMEDOUT, "processes do not stop")
            time.sleep(0.0005)

    def do_thaw(self, number: int, message: wire.Message) -> None:
        for pid in self.stopped:
            _signal(pid, signal.SIGCONT)
        self.stopped = []

    # --- files -----------------------------------------------------------------------------------------------------

    def do_put(self, number: int, message: wire.Message) -> wire.Message:
        make = _receiver(message)
        if make is None:
            return {"no_user": message["user"]}
        self.take(number, make)
        return {}

    def do_put_whole(self, number: int, message: wire.Message) -> wire.Message:
        """As `put`, from a file that holds the whole transfer and is gone from its place at once."""
        make = _receiver(message)
        if make is None:
            return {"no_user": message["user"]}
        source = os.open(message["whole"], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.unlink(message["whole"])
        self.take_from(source, number, make)
        return {}

    def do_get(self, number: int, message: wire.Message) -> wire.Message:
        limits = sending.Limits(**message["limits"])
        self.give(number, sending.records(message["source"], limits, links=bool(message["links"])))
        return {}

    def do_look(self, number: int, message: wire.Message) -> wire.Message:
        """What there is at these paths."""
        return {"rows": [state.look(path) for path in message["paths"]]}

    def do_index(self, number: int, message: wire.Message) -> wire.Message:
        self.give(number, state.index())
        return {}

    def do_below(self, number: int, message: wire.Message) -> wire.Message:
        return {"paths": state.below(message["path"])}

    def do_give_back(self, number: int, message: wire.Message) -> wire.Message:
        """These paths, as another box is to have them again."""
        self.give(number, revert.records(message["paths"]))
        return {}

    def do_take_back(self, number: int, message: wire.Message) -> wire.Message:
        self.take(number, revert.Reverting)
        return {}

    def do_remove(self, number: int, message: wire.Message) -> None:
        for path in message["paths"]:
            revert.remove(path)

    def do_pack(self, number: int, message: wire.Message) -> wire.Message:
        return {"packed": state.pack(message["paths"]), "files": state.changed_files()}

    def do_unpack(self, number: int, message: wire.Message) -> None:
        state.unpack(message["skip"])

    def do_drop_pack(self, number: int, message: wire.Message) -> None:
        state.drop()

    def take(self, number: int, make: Callable[[], Receiver]) -> None:
        """A worker writes what comes on stream `number`, and says on the next how it went."""
        read, write = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, wire.WINDOW)
        self.take_from(read, number, make)
        pumps.Incoming(self.loop, number, write)

    def take_from(self, source: int, number: int, make: Callable[[], Receiver]) -> None:
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
            pumps.connect(self.loop, number, connection)
            return
        raise failure or OSError(errno.ECONNREFUSED, "connection refused")


def _receiver(message: wire.Message) -> Callable[[], Receiver] | None:
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


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def main() -> None:
    """Serve until the owner's end closes. PID 1 ending ends the box."""
    try:
        system.prctl(system.PR_SET_DUMPABLE, 0)
        Supervisor().loop.serve()
    except (EOFError, BrokenPipeError):
        os._exit(0)
    except BaseException as error:
        print(f"the box's first process failed: {error!r}", file=sys.stderr, flush=True)
        os._exit(70)
