"""From a fork of the box's first process to the program asked for. Runs in the child; never returns."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchflow_sandbox_local.helper import linux
from benchflow_sandbox_local.helper.users import User
from benchflow_sandbox_local.helper.view import Gate

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Program(NamedTuple):
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    user: User


class Confinement(NamedTuple):
    """What every program in a box is held to."""

    seccomp: linux.SeccompFilter | None
    single_user: bool
    """Only one uid is mapped: there is nothing to switch to, and setuid programs must stay powerless."""
    nesting: bool = False
    """Root of the box keeps every capability over what is the box's own: namespaces, mounts."""


def run(program: Program, confinement: Confinement, streams: Sequence[int], gate: Gate | None = None) -> None:
    code = 126
    try:
        if gate is not None:
            gate.enter()
            linux.drop_bounding_set()  # a new user namespace comes with a full one
        _own_session(streams)
        _confine(confinement)
        _become(program.user, confinement)
        os.chdir(program.cwd)
        code = _execute(program)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{error}\n".encode(errors="replace"))
    os._exit(code)


def run_plain(program: Program, streams: Sequence[int]) -> None:
    """The same where there are no namespaces."""
    code = 126
    try:
        _own_session(streams)
        os.chdir(program.cwd)
        code = _execute(program)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{error}\n".encode(errors="replace"))
    os._exit(code)


def _own_session(streams: Sequence[int]) -> None:
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # and would stay so in the program
        signal.signal(ignored, signal.SIG_DFL)
    os.setsid()
    lifted = [os.dup(fd) if fd < 3 else fd for fd in streams]
    for number, fd in enumerate(lifted):
        os.dup2(fd, number, inheritable=True)
    linux.close_from(3)


def _confine(confinement: Confinement) -> None:
    _prefer_as_victim()
    # One byte: a core handler of the host, which would run outside, is not called for our crashes.
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    if confinement.single_user:
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if confinement.seccomp:
        confinement.seccomp.load()


def _prefer_as_victim() -> None:
    """When memory runs out it is a program that goes, not the box's first process."""
    with contextlib.suppress(OSError):
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(fd, b"500")
        os.close(fd)


def _become(user: User, confinement: Confinement) -> None:
    if not confinement.single_user:
        os.setgroups(user.groups)
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    if user.uid == 0 and not confinement.nesting:
        linux.limit_capabilities()


def _execute(program: Program) -> int:
    """Replace this process, or say why not: 127 for a program that is not there, 126 for one that cannot run."""
    name = program.argv[0]
    env = dict(program.env)
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
