"""A box where namespaces are forbidden: a folder, rewritten paths, Landlock where the kernel has it, and no promises
beyond that. Programs see the host's processes and network, and only the paths they are given are the box's own."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import re
import signal
import socket
from typing import Any, Final, NamedTuple

from benchflow_boxkit.inside import launch, system, users, wire
from benchflow_boxkit.inside.calls import Calls
from benchflow_boxkit.inside.polling import DirectLoop

from benchflow_sandbox_local.helper import landlock, tree
from benchflow_sandbox_local.helper.box import tell
from benchflow_sandbox_local.plainplan import is_claimable

_READABLE: Final = (
    "/usr",
    "/etc",
    "/opt",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/lib32",
    "/nix",
    "/proc",
    "/dev",
    "/sys",
)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts")
_LARGEST_TEXT: Final = 1024 * 1024


class Paths(NamedTuple):
    """Paths of the box, and where they are on the host."""

    places: dict[str, str]
    real: tuple[str, ...]
    """Paths of the host that are meant as they are, even where they begin like one of the box's."""

    def rewrite(self, text: str) -> str:
        places = self.places | {path: path for path in self.real}
        names = "|".join(re.escape(at) for at in sorted(places, key=len, reverse=True))
        pattern = rf"(?<![A-Za-z0-9_./-])({names})(?![A-Za-z0-9_.-])"
        return re.sub(pattern, lambda found: places[found[1]], text)

    def place(self, path: str) -> str:
        clean = os.path.normpath(path)
        if any(clean.startswith(f"{real}/") for real in self.real):
            return clean
        for at in sorted(self.places, key=len, reverse=True):
            if clean == at or clean.startswith(f"{at}/"):
                return self.places[at] + clean.removeprefix(at)
        return clean

    def own(self, path: str) -> str:
        """The same, for our own reading and writing: never outside the box, not by way of a link either."""
        place = self.place(path)
        parent = os.path.realpath(os.path.dirname(place))
        roots = [os.path.realpath(root) for root in self.places.values()]
        inside = any(parent == root or parent.startswith(f"{root}/") for root in roots)
        if not inside and place not in self.places.values():
            raise PermissionError(errno.EACCES, "outside the box, which at stage 3 is a few folders", path)
        return place


class PlainSupervisor(Calls):
    """It adopts every orphan of its programs, and so finds all of them again; their users are the one that it is."""

    switches_users = False

    def __init__(self, control: int, plan: dict[str, Any]) -> None:
        self.loop: DirectLoop
        super().__init__(DirectLoop(self.call, control, control))
        self.paths = Paths(plan["paths"], tuple(plan["real"]))
        self.root: str = plan["root"]
        self.rewrites = bool(plan["rewrite"])

    def limits_hit(self) -> dict[str, int]:
        """Return nothing: the host counts."""
        return {}

    def path(self, path: str) -> str:
        return self.paths.own(path)

    def user(self, name: str | None) -> users.User | None:
        own = _own_name()
        if name not in (None, "root", own, str(os.getuid())):
            return None
        return users.User(own, 0, os.getgid(), (), f"{self.root}/root")

    def claim(self, path: str) -> None:
        """Make the folder that something is put into the box's own, where it may be."""
        path = os.path.normpath(path)
        if self.paths.place(path) != path:
            return
        folder = os.path.dirname(path)
        at = path if folder in ("/", "/opt") else folder
        if is_claimable(at):
            self.paths.places[at] = f"{self.root}{at}"

    def do_put(self, number: int, message: wire.Message) -> wire.Message:
        self.claim(message["target"])
        return super().do_put(number, message)

    def do_put_now(self, number: int, message: wire.Message) -> wire.Message:
        self.claim(message["target"])
        found = super().do_put_now(number, message)
        if self.rewrites:
            self.rewrite_files(self.path(message["target"]))
        return found

    def rewrite_files(self, target: str) -> None:
        """Scripts name the box's paths: in text files that were put in, they become the ones they are at."""
        files = [target] if os.path.isfile(target) else []
        for folder, _, names in os.walk(target):
            files += [os.path.join(folder, name) for name in names]
        for path in files:
            if os.path.islink(path) or os.path.getsize(path) > _LARGEST_TEXT:
                continue
            with contextlib.suppress(OSError, UnicodeDecodeError), open(path, "r+", newline="") as file:
                text = file.read()
                changed = text if "\0" in text else self.paths.rewrite(text)
                if changed != text:
                    file.seek(0)
                    file.write(changed)
                    file.truncate()

    def program(self, message: wire.Message, user: users.User) -> launch.Program:
        wanted = super().program(message, user)
        argv = [self.paths.rewrite(text) for text in wanted.argv]
        env = {name: self.paths.rewrite(text) for name, text in wanted.env.items()} | {"TMPDIR": f"{self.root}/tmp"}
        return launch.Program(argv, env, self.paths.place(wanted.cwd), None)


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _furnish(box: PlainSupervisor, plan: dict[str, Any]) -> None:
    if plan["seed"]:
        os.makedirs(os.path.dirname(box.root), exist_ok=True)
        tree.copy(plan["seed"], box.root)
        if box.rewrites:
            box.rewrite_files(box.root)
    for name, mode in plan["folders"].items():
        os.makedirs(f"{box.root}/{name}", exist_ok=True)
        os.chmod(f"{box.root}/{name}", mode)
    with contextlib.suppress(OSError):  # of this machine, or a file is there: who wants to work in it will hear
        os.makedirs(box.path(plan["workdir"]), exist_ok=True)


def run(plan: dict[str, Any], control: socket.socket) -> None:
    """The whole life of a plain box's process. Never returns."""
    try:
        os.setsid()
        system.close_except({0, 1, 2, control.fileno()})
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
        supervisor = PlainSupervisor(control.fileno(), plan)
        _furnish(supervisor, plan)
        landlock.restrict([*_READABLE, *plan["readable"]], [plan["root"], *plan["writable"], *_DEVICES])
        workdir = supervisor.paths.place(plan["workdir"])
        tell(control, {"event": "ready", "notes": plan["notes"], "users": [_own_name()], "workdir": workdir})
    except BaseException as error:
        tell(control, {"event": "failed", "reason": str(wire.describe(error))})
        os._exit(1)
    try:
        supervisor.loop.serve()
    except (EOFError, ConnectionError):
        pass
    finally:
        supervisor.loop.close()
        with contextlib.suppress(TimeoutError):
            supervisor.do_kill_all(0, {})
        for pid in supervisor.loop.own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os._exit(0)
