"""The helper: a small single-threaded process that forks, so that the provider, which is asyncio, never does."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import socket
import time
from typing import Any, NamedTuple

from benchflow_boxkit.inside import passing, system, wire
from benchflow_boxkit.inside.polling import DirectLoop

from benchflow_sandbox_local.helper import box, cgroups, jobs, linux, plain, setup, tree
from benchflow_sandbox_local.helper.workers import Workers

_PLAIN_SECONDS = 5.0


class Made(NamedTuple):
    """A box that exists: its first process, and what is to be removed with it."""

    name: str
    state: str
    pid: int
    lease: str
    cgroups: list[str]
    plain: bool
    """No namespace ends its programs with it: it does that itself, when its owner lets go of it."""


class Ending(NamedTuple):
    """A box that was told to end, and the call that waits for it."""

    made: Made
    number: int
    remove: bool
    kill_at: float


class Server:
    def __init__(self, owner: int) -> None:
        self.loop = DirectLoop(self.call, owner, owner)
        self.loop.ended = self.process_ended
        self.host: box.Host | None = None
        self.places = jobs.Places("", {})
        self.boxes: dict[str, Made] = {}
        self.running: set[int] = set()
        self.ending: dict[int, Ending] = {}
        self.snapshots: dict[str, str] = {}
        self.trash: list[str] = []
        self.groups: list[str] = []
        self.sweeping = False
        self.workers = Workers(self.loop, self.work)

    def serve(self) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            while True:
                self.loop.handle(1.0 if self.ending else None)
                self.kill_late()
        except (EOFError, ConnectionError):
            pass
        finally:
            self.close()

    def call(self, number: int, body: bytes) -> None:
        """Answer a call, or leave that to what it began."""
        message = wire.parse(body)
        given = message["given"] = [self.loop.passed.popleft() for _ in range(message.get("descriptors", 0))]
        try:
            answer = getattr(self, "do_" + message["op"])(number, message)
        except setup.Unavailable as error:
            answer = {"unavailable": str(error)}
        except OSError as error:
            answer = wire.failure(error)
        finally:
            passing.close(given)
        if answer is not None:
            self.loop.send(wire.message(wire.ANSWER, number, answer))

    def do_setup(self, number: int, message: wire.Message) -> wire.Message:
        self.workers.dismiss()
        self.places = jobs.Places(message["state"], dict(message["dirs"]))
        self.host, facts = setup.prepare(message)
        gc.disable()  # a collection in a fork would touch, and so copy, every page
        gc.freeze()
        return facts

    def do_start(self, number: int, message: wire.Message) -> wire.Message:
        """Answers at once; the box itself says on its control socket, which came along, when it is ready."""
        is_plain = bool(message.get("plain"))
        pid = os.fork() if is_plain else linux.clone(linux.CLONE_NEWPID | system.CLONE_NEWNS)
        if pid == 0:
            control = socket.socket(fileno=message["given"][0])
            if is_plain:
                plain.run(message, control)
            assert self.host is not None
            box.run(self.host, message, control)
        name = message["box"]
        self.boxes[name] = Made(name, message["state"], pid, message["lease"], message["cgroups"], is_plain)
        self.running.add(pid)
        return {"pid": pid}

    def do_job(self, number: int, message: wire.Message) -> None:
        """Files of boxes and layers: a worker does it, and its result is the answer."""
        if "lease" in message:  # a snapshot that is to go with its owner
            self.snapshots[message["with"]["layer"]] = message["lease"]
        for path in message["with"].get("paths", ()) if message["job"] == "discard" else ():
            self.snapshots.pop(path, None)

        def answer(result: bytes) -> None:
            self.loop.send(wire.frame(wire.ANSWER, number, result))

        # With the state: where there are no namespaces nothing is set up, and a worker may be older than the first job.
        self.workers.give(message["job"], {**message["with"], "state": message["state"]}, answer)

    def work(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """In a worker."""
        if name == "sweep":
            _delete(**arguments)
            return {}
        places = jobs.Places(arguments.pop("state"), self.places.dirs)
        return jobs.JOBS[name](places, **arguments)

    # --- ending ----------------------------------------------------------------------------------------------------

    def do_remove(self, number: int, message: wire.Message) -> wire.Message | None:
        """End a box and delete its files; answered when nothing of it runs any more."""
        return self._end(self.boxes.pop(message["box"], None), number, remove=True)

    def do_end(self, number: int, message: wire.Message) -> wire.Message | None:
        """End a box's processes and keep its files."""
        return self._end(self.boxes.get(message["box"]), number, remove=False)

    def _end(self, made: Made | None, number: int, *, remove: bool) -> wire.Message | None:
        if made is None:
            return {}
        ending = Ending(made, number, remove, time.monotonic() + _PLAIN_SECONDS)
        if made.pid in self.running:
            self.ending[made.pid] = ending
            if not made.plain:
                os.kill(made.pid, signal.SIGKILL)
        else:
            self.ended(ending)
        return None

    def process_ended(self, pid: int, code: int) -> None:
        self.running.discard(pid)
        if pid in self.ending:
            self.ended(self.ending.pop(pid))

    def kill_late(self) -> None:
        for pid, ending in self.ending.items():
            if time.monotonic() > ending.kill_at:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def ended(self, ending: Ending) -> None:
        made = ending.made
        if ending.remove:
            self.throw_away(made)
            self.sweep()
        self.loop.send(wire.message(wire.ANSWER, ending.number, {}))

    def throw_away(self, made: Made) -> None:
        """Out of sight at once; deleted when there is time."""
        away = f"{made.state}/trash/{made.name}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{made.state}/boxes/{made.name}", away)
            self.trash.append(away)
        with contextlib.suppress(OSError):
            os.unlink(made.lease)
        self.groups += made.cgroups

    def sweep(self) -> None:
        if self.sweeping or not (self.trash or self.groups):
            return
        self.sweeping = True
        self.workers.give("sweep", {"trash": self.trash, "groups": self.groups}, self.swept)
        self.trash, self.groups = [], []

    def swept(self, result: bytes = b"") -> None:
        self.sweeping = False
        self.sweep()

    def close(self) -> None:
        """The owner is gone: so is everything it had."""
        self.loop.close()
        left = [*self.boxes.values(), *(ending.made for ending in self.ending.values())]
        self.ending.clear()
        deadline = time.monotonic() + _PLAIN_SECONDS
        for made in left:
            while made.plain and made.pid in self.running and time.monotonic() < deadline:
                self.loop.reap()
                time.sleep(0.002)
            if made.pid in self.running:
                os.kill(made.pid, signal.SIGKILL)
        for made in left:
            if made.pid in self.running:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(made.pid, 0)
            self.throw_away(made)
        for layer, lease in self.snapshots.items():
            self.trash.append(f"{self.places.state}/{layer}")
            with contextlib.suppress(OSError):
                os.unlink(lease)
        _delete(self.trash, self.groups)
        self.workers.wait(self.swept)


def _delete(trash: list[str], groups: list[str]) -> None:
    for path in trash:
        with contextlib.suppress(OSError):
            tree.remove(path)
    cgroups.remove(groups)


def main(owner: int) -> None:
    Server(owner).serve()
