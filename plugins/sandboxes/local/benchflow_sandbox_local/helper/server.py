"""The helper: a small single-threaded process that forks, so that the provider, which is asyncio, never does."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import time
from typing import Any, NamedTuple

from benchflow_sandbox_local.helper import box, cgroups, jobs, linux, plain, setup, transfer, tree, wire
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
    """A box that was told to end, and who waits for it."""

    made: Made
    waiter: socket.socket
    remove: bool
    kill_at: float


class Server:
    def __init__(self, owner: socket.socket) -> None:
        self.owner = owner
        self.host: box.Host | None = None
        self.places = jobs.Places("", {})
        self.boxes: dict[str, Made] = {}
        self.running: set[int] = set()
        self.ending: dict[int, Ending] = {}
        self.snapshots: dict[str, str] = {}
        self.trash: list[str] = []
        self.groups: list[str] = []
        self.sweeping = False
        self.poll = select.poll()
        self.workers = Workers(self.poll, self.work)

    def serve(self) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        read, write = os.pipe()
        for fd in (read, write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self.poll.register(self.owner, select.POLLIN)
        self.poll.register(read, select.POLLIN)
        try:
            while True:
                found = self.poll.poll(1000 if self.ending else None)
                for fd in [fd for fd, _ in found if not self.workers.hear(fd)]:  # who is free is told first
                    if fd == read:
                        with contextlib.suppress(BlockingIOError):
                            os.read(read, 4096)
                        self.reap()
                    elif fd == self.owner.fileno():
                        self.handle(*wire.receive(self.owner))
                self.kill_late()
        except (EOFError, ConnectionError):
            pass
        finally:
            self.close()

    def handle(self, message: wire.Message, fds: list[int]) -> None:
        answer: wire.Message = {"id": message["id"]}
        try:
            answer.update(getattr(self, "do_" + message["op"])(message, fds))
        except setup.Unavailable as error:
            answer["unavailable"] = str(error)
        except OSError as error:
            answer["error"] = transfer.describe(error)
        finally:
            wire.close_fds(fds)
        wire.send(self.owner, answer)

    def do_setup(self, message: wire.Message, fds: list[int]) -> dict[str, Any]:
        self.workers.dismiss()
        self.places = jobs.Places(message["state"], dict(message["dirs"]))
        self.host, facts = setup.prepare(message)
        gc.disable()  # a collection in a fork would touch, and so copy, every page
        gc.freeze()
        return facts

    def do_start(self, message: wire.Message, fds: list[int]) -> dict[str, Any]:
        """Answers at once; the box itself says on its control socket, which is `fds[0]`, when it is ready."""
        is_plain = bool(message.get("plain"))
        pid = os.fork() if is_plain else linux.clone(linux.CLONE_NEWPID | linux.CLONE_NEWNS)
        if pid == 0:
            control = socket.socket(fileno=fds[0])
            if is_plain:
                plain.run(message, control)
            assert self.host is not None
            box.run(self.host, message, control)
        name = message["box"]
        self.boxes[name] = Made(name, message["state"], pid, message["lease"], message["cgroups"], is_plain)
        self.running.add(pid)
        return {"pid": pid}

    def do_job(self, message: wire.Message, fds: list[int]) -> dict[str, Any]:
        """Files of boxes and layers: a worker does it and answers on `fds[0]`."""
        if "lease" in message:  # a snapshot that is to go with its owner
            self.snapshots[message["with"]["layer"]] = message["lease"]
        for path in message["with"].get("paths", ()) if message["job"] == "discard" else ():
            self.snapshots.pop(path, None)
        if not self.places.state:
            self.places = jobs.Places(message["state"], {})
        self.workers.give(message["job"], message["with"], fds)
        return {}

    def work(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """In a worker."""
        if name == "sweep":
            _delete(**arguments)
            return {}
        return jobs.JOBS[name](self.places, **arguments)

    # --- ending ----------------------------------------------------------------------------------------------------

    def do_remove(self, message: wire.Message, fds: list[int]) -> dict[str, Any]:
        """End a box and delete its files; told on `fds[0]` when nothing of it runs any more."""
        return self._end(self.boxes.pop(message["box"], None), fds, remove=True)

    def do_end(self, message: wire.Message, fds: list[int]) -> dict[str, Any]:
        """End a box's processes and keep its files."""
        return self._end(self.boxes.get(message["box"]), fds, remove=False)

    def _end(self, made: Made | None, fds: list[int], *, remove: bool) -> dict[str, Any]:
        waiter = socket.socket(fileno=fds.pop())
        if made is None:
            _tell(waiter)
            return {}
        ending = Ending(made, waiter, remove, time.monotonic() + _PLAIN_SECONDS)
        if made.pid in self.running:
            self.ending[made.pid] = ending
            if not made.plain:
                os.kill(made.pid, signal.SIGKILL)
        else:
            self.ended(ending)
        return {}

    def reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
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
        _tell(ending.waiter)

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
        self.workers.give("sweep", {"trash": self.trash, "groups": self.groups}, then=self.swept)
        self.trash, self.groups = [], []

    def swept(self) -> None:
        self.sweeping = False
        self.sweep()

    def close(self) -> None:
        """The owner is gone: so is everything it had."""
        left = [*self.boxes.values(), *(ending.made for ending in self.ending.values())]
        deadline = time.monotonic() + _PLAIN_SECONDS
        for made in left:
            while made.plain and made.pid in self.running and time.monotonic() < deadline:
                self.reap()
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


def _tell(waiter: socket.socket) -> None:
    with waiter, contextlib.suppress(OSError):
        wire.send(waiter, {})


def _delete(trash: list[str], groups: list[str]) -> None:
    for path in trash:
        with contextlib.suppress(OSError):
            tree.remove(path)
    cgroups.remove(groups)


def main(fd: int) -> None:
    with socket.socket(fileno=fd) as owner:
        Server(owner).serve()
