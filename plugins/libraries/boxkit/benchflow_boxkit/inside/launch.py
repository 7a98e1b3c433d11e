"""From the supervisor to a program: a keeper that inherits all orphans of the program, and the program below it."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from benchflow_boxkit.inside import system
from benchflow_boxkit.inside.users import User

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STATUS = struct.Struct("=i")


class ProgramIsolation(Protocol):
    """What keeps one program in, beyond the user that it runs as."""

    def admit(self, pid: int) -> None:
        """Help the child on from its parent, as soon as it is there."""

    def enter(self) -> None:
        """Take the isolation on in the child, while it is root and has the parent's descriptors."""

    def shut(self) -> None:
        """Give up what is left to give up, in the child, last, as the program's own user."""


class Program(NamedTuple):
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    user: User | None
    """None: it stays the user that starts it."""
    isolation: Callable[[], ProgramIsolation] | None = None
    """Makes it, in the program's parent."""


class RunningProgram(NamedTuple):
    """A program below a keeper: their process ids, and where the keeper writes the exit code."""

    keeper: int
    pid: int
    status: int


def start(program: Program, streams: Sequence[int]) -> RunningProgram:
    read, write = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        try:
            _keep(program, streams, write)
        finally:
            os._exit(1)
    os.close(write)
    data = os.read(read, STATUS.size)
    if len(data) < STATUS.size:
        os.close(read)
        raise OSError(errno.EAGAIN, "no process could be started")
    os.set_blocking(read, False)
    return RunningProgram(keeper, STATUS.unpack(data)[0], read)


def _keep(program: Program, streams: Sequence[int], status: int) -> None:
    """Wait for the program, say how it ended, and stay while anything that came from it is left."""
    for number in (signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
    isolation = program.isolation() if program.isolation else None
    pid = os.fork()
    if pid == 0:
        become_program(program, streams, isolation)
    if isolation is not None:
        isolation.admit(pid)
    system.close_except({2, status})
    os.write(status, STATUS.pack(pid))
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, code = os.wait()
            if ended == pid:
                with contextlib.suppress(OSError):
                    os.write(status, STATUS.pack(os.waitstatus_to_exitcode(code)))
    os._exit(0)


def become_program(program: Program, streams: Sequence[int], isolation: ProgramIsolation | None) -> None:
    """Turn this process, a fresh child of the supervisor or of a keeper, into the program. Never returns."""
    code = 126
    try:
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # and would stay so in the program
            signal.signal(ignored, signal.SIG_DFL)
        os.setsid()
        lifted = [os.dup(fd) if fd < 3 else fd for fd in streams]
        for number, fd in enumerate(lifted):
            os.dup2(fd, number, inheritable=True)
        _prefer_as_victim()
        if isolation is not None:
            isolation.enter()
        system.close_from(3)
        os.umask(0o022)
        if program.user is not None:
            os.setgroups(program.user.groups)
            os.setresgid(program.user.gid, program.user.gid, program.user.gid)
            os.setresuid(program.user.uid, program.user.uid, program.user.uid)
        os.chdir(program.cwd)
        if isolation is not None:
            isolation.shut()
        code = _execute(program)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{error}\n".encode(errors="replace"))
    os._exit(code)


def _prefer_as_victim() -> None:
    """When memory runs out it is a program that goes, not the box's first process."""
    with contextlib.suppress(OSError):
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(fd, b"500")
        os.close(fd)


def _execute(program: Program) -> int:
    """Replace this process, or say why not: 127 for a program that is not there, 126 for one that cannot run."""
    name, env = program.argv[0], dict(program.env)
    folders = [""] if "/" in name else env.get("PATH", DEFAULT_PATH).split(":")
    failure: OSError | None = None
    for folder in folders:
        path = os.path.join(folder, name) if folder else name
        try:
            os.execve(path, list(program.argv), env)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                failure = error
    if failure is None:
        os.write(2, f"{name}: not found\n".encode(errors="replace"))
        return 127
    if failure.errno == errno.ENOEXEC:  # a script without a first line, as shells run it
        with contextlib.suppress(OSError):
            os.execve("/bin/sh", ["sh", os.fsdecode(failure.filename or name), *program.argv[1:]], env)
    os.write(2, f"{name}: {failure.strerror}\n".encode(errors="replace"))
    return 126
