"""The supervisor of a box at a vendor's, which outlives broken connections.

It is not the box's first process, since that is the vendor's. It is the reaper of everything it starts, so that it can
end it all, and it ends with everything it started when nobody has come back to it for a while.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from benchflow_boxkit.inside import delta, pumps, system, users, view, wire
from benchflow_boxkit.inside.calls import Calls
from benchflow_boxkit.inside.loop import Abandoned, Loop

FOLDER: Final = "/run/benchflow-box"
SOCKET: Final = f"{FOLDER}/socket"
HOME: Final = "/opt/benchflow/boxkit"
"""Where this program, its Python and what is known about the image are."""
_PATIENCE: Final = 300.0


class Supervisor(Calls):
    def __init__(self, listener: socket.socket) -> None:
        self.loop: Loop
        super().__init__(Loop(self.call, listener, _PATIENCE))
        self.began = self.furnished = 0
        self.skip: frozenset[str] = frozenset()
        self.no_view: str | None = None
        """Why this box can limit no program; unknown until the first is to be."""

    def do_exec(self, number: int, message: wire.Message) -> wire.Message:
        if message["view"] and self.no_view is None:
            self.no_view = view.refusal(f"{FOLDER}/trial", message["view"]["shut"])
        return {"no_view": self.no_view} if message["view"] and self.no_view else super().do_exec(number, message)

    def isolation(self, message: wire.Message) -> Callable[[], view.ViewIsolation] | None:
        """Keep a limited program from this supervisor, and from what the next connection runs."""
        if not message["view"]:
            return None
        return partial(view.ViewIsolation, view.View(**message["view"]), view.View([HOME], [FOLDER], []))

    def do_begin(self, number: int, message: wire.Message) -> wire.Message:
        """Before anything runs in the box."""
        self.skip = frozenset({FOLDER, HOME, *message["skip"]})
        if message["workdir"]:
            os.makedirs(message["workdir"], exist_ok=True)
        self.began = self.furnished = delta.mark()
        return {"users": users.names(), "image": _image()}

    def do_furnished(self, number: int, message: wire.Message) -> wire.Message:
        """What a snapshot had is in place: from here on it is the box's own doing."""
        if message["workdir"]:
            os.makedirs(message["workdir"], exist_ok=True)
        self.furnished = delta.mark()
        return {"users": users.names()}

    def do_patience(self, number: int, message: wire.Message) -> None:
        self.loop.patience = float(message["seconds"])

    def do_look(self, number: int, message: wire.Message) -> wire.Message:
        return {"there": [os.path.lexists(path) for path in message["paths"]]}

    def do_index(self, number: int, message: wire.Message) -> wire.Message:
        self.give(number, delta.index(self.skip))
        return {}

    def do_rows(self, number: int, message: wire.Message) -> wire.Message:
        """What differs from the image, whose index comes on stream `number`; the rows go out on the next."""
        read, write = os.pipe()
        out, told = os.pipe()
        times, skip = delta.Times(self.began, self.furnished), self.skip

        def work() -> None:
            parts = []
            while data := os.read(read, 1 << 18):
                parts.append(data)
            with open(told, "wb", buffering=1 << 16) as file:
                file.writelines(delta.rows(delta.read_index(b"".join(parts)), times, skip))

        self.worker(work, {read, told})
        pumps.Incoming(self.loop, number, write)
        pumps.Outgoing(self.loop, number + 1, out)
        return {}

    def do_furnish(self, number: int, message: wire.Message) -> wire.Message:
        self.take(number, delta.Putting)
        return {}


def _image() -> wire.Message:
    """What was written down when the image was built: its variables, directory and user."""
    try:
        with open(f"{HOME}/image.json") as file:
            found = dict(json.load(file))
    except (OSError, ValueError):
        return {}
    user = users.find(str(found.get("uid", 0)))
    found["user"] = user.name if user is not None and user.uid else None
    return found


def start() -> None:
    """In a process of its own that nothing here is the parent of; returns at once."""
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    lock = os.open(f"{FOLDER}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # another one is starting it, or it runs
        os.close(lock)
        return
    child = os.fork()
    if child:
        os.close(lock)
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    _serve(lock)


def _serve(lock: int) -> None:
    try:
        null = os.open("/dev/null", os.O_RDWR)
        log = os.open(f"{FOLDER}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        for fd, source in ((0, null), (1, null), (2, log)):
            os.dup2(source, fd)
        system.close_except({0, 1, 2, lock})
        os.chdir("/")
        os.environ.clear()
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("-900")
        system.prctl(system.PR_SET_DUMPABLE, 0)
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
        listener = socket.socket(socket.AF_UNIX)
        os.umask(0o077)
        listener.bind(SOCKET)
        os.umask(0o022)
        listener.listen(8)
        box = Supervisor(listener)
        try:
            box.loop.serve()
        except Abandoned:
            box.do_kill_all(0, {})
    except BaseException as error:
        print(f"the box's supervisor failed: {error!r}", file=sys.stderr, flush=True)
    os._exit(0)
