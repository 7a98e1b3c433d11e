"""A box where namespaces are forbidden: a folder, rewritten paths, Landlock where the kernel has it, and no promises
beyond that. Programs see the host's processes and network, and only the paths they are given are the box's own."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import re
import shutil
import signal
import socket
import sys
from typing import Any, Final, NamedTuple

from benchflow_sandbox_local.helper import landlock, launch, linux, transfer, users, wire
from benchflow_sandbox_local.helper.init import Init, Running
from benchflow_sandbox_local.helper.service import Answer
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


class PlainInit(Init):
    def __init__(self, control: socket.socket, plan: dict[str, Any]) -> None:
        super().__init__(control, launch.Confinement(None, True))
        self.paths = Paths(plan["paths"], tuple(plan["real"]))
        self.root: str = plan["root"]
        self.rewrites = bool(plan["rewrite"])

    def fork(self) -> int:
        return os.fork()

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

    def do_put(self, message: wire.Message, fds: list[int]) -> Answer:
        self.claim(message["target"])
        return super().do_put(message, fds)

    def do_put_now(self, message: wire.Message, fds: list[int]) -> Answer:
        self.claim(message["target"])
        found = super().do_put_now(message, fds)
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

    def run_program(
        self, program: launch.Program, streams: list[int], wanted: dict[str, list[str]] | None, keep: bool
    ) -> Running:
        argv = [self.paths.rewrite(text) for text in program.argv]
        env = {name: self.paths.rewrite(text) for name, text in program.env.items()} | {"TMPDIR": f"{self.root}/tmp"}
        rewritten = launch.Program(argv, env, self.paths.place(program.cwd), program.user)
        pid = os.fork()
        if pid == 0:
            self._hold(rewritten, streams)
        return Running(pid, keep)

    def _hold(self, program: launch.Program, streams: list[int]) -> None:
        """In a child: run the program below a process that its orphans come back to, and end as it does."""
        code = 1
        try:
            self.control.close()
            _adopt_orphans()
            pid = os.fork()
            if pid == 0:
                launch.run_plain(program, streams)
            linux.close_all_except(())
            while True:
                ended, status = os.wait()
                if ended == pid:
                    code = os.waitstatus_to_exitcode(status)
                    break
            if code < 0:
                signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
                os.kill(os.getpid(), -code)
        finally:
            os._exit(code)

    def tree(self, running: Running) -> list[int]:
        """The holder stands still and goes last: until then all orphans come back to it."""
        if running.pid not in self.by_pid:
            return []
        os.kill(running.pid, signal.SIGSTOP)
        return _descendants(running.pid) or [running.pid]

    def alive(self) -> list[tuple[int, str]]:
        holders = set(self.by_pid)
        return [(pid, "S") for pid in _descendants(os.getpid()) if pid not in holders and pid not in self.workers]

    def kill_everything(self) -> None:
        for pid in _descendants(os.getpid()):
            if pid not in self.by_pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)


def _parents() -> dict[int, int]:
    """Process to parent, zombies left out."""
    if sys.platform != "linux":
        return _parents_by_ps()
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b") ")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    found[int(name)] = int(fields[1])
    return found


def _parents_by_ps() -> dict[int, int]:
    import subprocess

    done = subprocess.run(["ps", "-axo", "pid=,ppid=,state="], capture_output=True, text=True, check=False)
    rows = [row.split() for row in done.stdout.splitlines()]
    return {int(row[0]): int(row[1]) for row in rows if len(row) == 3 and not row[2].startswith("Z")}


def _descendants(top: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        children.setdefault(parent, []).append(pid)
    found, pending = [], list(children.get(top, ()))
    while pending:
        pid = pending.pop()
        found.append(pid)
        pending += children.get(pid, ())
    return found


def _furnish(box: PlainInit, plan: dict[str, Any]) -> None:
    if plan["seed"]:
        shutil.copytree(plan["seed"], box.root, symlinks=True)
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
        linux.close_all_except([0, 1, 2, control.fileno()])
        _adopt_orphans()
        box = PlainInit(control, plan)
        _furnish(box, plan)
        landlock.restrict([*_READABLE, *plan["readable"]], [plan["root"], *plan["writable"], *_DEVICES])
        wire.send(
            control,
            {
                "event": "ready",
                "notes": plan["notes"],
                "users": [_own_name()],
                "proxy_port": 0,
                "workdir": box.paths.place(plan["workdir"]),
            },
        )
    except BaseException as error:
        with contextlib.suppress(OSError):
            wire.send(control, {"event": "failed", "reason": str(transfer.describe(error))})
        os._exit(1)
    try:
        box.serve()
    except (EOFError, ConnectionError):
        pass
    finally:
        for _ in range(200):
            if not (left := _descendants(os.getpid())):
                break
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
        os._exit(0)
