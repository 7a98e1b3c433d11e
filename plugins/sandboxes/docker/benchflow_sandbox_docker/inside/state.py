"""The box's own state beside its root file system: what paths are, volumes packed into a snapshot, being cut off."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import Iterator
from typing import Any

from benchflow_boxkit.inside import receiving, sending

from benchflow_sandbox_docker.inside import system

FORBIDDEN, RESOLVERS, CUT_OFF, PEERS, NEVER = 100, 90, 50, 40, 30
"""Priorities of routing rules: the lowest that matches decides."""
_PACK = "/.benchflow-volumes"
_COARSE = 20_000_000
"""Nanoseconds that a file's time may lag behind the clock."""
ENGINE_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""Mounted over the image's by the engine, and so no part of an image made from the box."""


def cut_off(wanted: bool) -> None:
    """Block all traffic except loopback, or unblock it."""
    forbid(["0.0.0.0/0", "::/0"], CUT_OFF, undo=not wanted)


def forbid(prefixes: list[str], priority: int = FORBIDDEN, *, undo: bool = False) -> None:
    for prefix in prefixes:
        try:
            system.forbid(prefix, priority, undo=undo)
        except OSError as error:
            if ":" not in prefix or error.errno not in (errno.EAFNOSUPPORT, errno.EOPNOTSUPP):
                raise  # where there is no IPv6 there is nothing to forbid in it


def permit_resolvers() -> None:
    """Some engines and clouds answer name look-ups at an address that is forbidden otherwise."""
    for line in engine_files().get("/etc/resolv.conf", b"").decode(errors="replace").splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver" and not words[1].startswith("127."):
            with contextlib.suppress(OSError):  # an address that makes no sense, or a kernel without such rules
                system.permit_names(words[1].partition("%")[0], RESOLVERS)


def look(path: str) -> list[Any] | None:
    """Type, mode, owner, size and link target."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    target = os.readlink(path) if stat.S_ISLNK(info.st_mode) else None
    size = info.st_size if stat.S_ISREG(info.st_mode) else 0
    return [kind_of(info.st_mode), stat.S_IMODE(info.st_mode), info.st_uid, size, target, info.st_gid]


def index(stamps: bool = False) -> Iterator[bytes]:
    """Everything on the root file system as one JSON object: path to type, mode, uid, gid.

    `stamps`: and what tells of files whether they were written to; of these no program can forge the last.
    """
    yield b"{"
    separator = b""
    pending = ["/"]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as found:
                entries = list(found)
        except OSError:
            continue
        for entry in entries:
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:  # gone, or deeper than a path can be
                continue
            if stat.S_ISDIR(info.st_mode):
                if os.path.ismount(entry.path):
                    continue
                pending.append(entry.path)
            row = [kind_of(info.st_mode), stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid]
            if stamps and not stat.S_ISDIR(info.st_mode):
                row += [info.st_size, info.st_mtime_ns, info.st_ctime_ns]
            yield separator + json.dumps(entry.path).encode() + b":" + json.dumps(row, separators=(",", ":")).encode()
            separator = b",\n"
    yield b"}"


def touched() -> Iterator[bytes]:
    """Every file that was changed since `remember`, as one JSON list: a change leaves a time that nobody can set.

    An engine compares size and time of modification, which can be set back.
    """
    yield b"["
    separator = b""
    pending, device = ["/"], os.lstat("/").st_dev
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        if info.st_dev == device:  # not a mount
                            pending.append(entry.path)
                    elif info.st_ctime_ns >= _since:
                        yield separator + json.dumps(entry.path).encode()
                        separator = b","
        except OSError:
            continue
    yield b"]"


def below(folder: str) -> list[str]:
    """Every path below a folder."""
    return [os.path.join(top, name) for top, dirs, files in os.walk(folder) for name in (*dirs, *files)]


def kind_of(mode: int) -> str:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "dir"), (stat.S_ISLNK, "link"))
    return next((name for test, name in kinds if test(mode)), "other")


def pack(paths: list[str]) -> int:
    """Copy mounts, which the engine leaves out of an image, to one place that it does not."""
    drop()
    os.mkdir(_PACK, 0o700)
    packed = _pack_files()
    for number, path in enumerate(paths):
        if os.path.isdir(path) and not os.path.islink(path) and os.listdir(path):
            with open(f"{_PACK}/{number}", "wb") as out:
                out.write(sending.record("at", path, os.lstat(path)))
                out.writelines(sending.records(path, None, links=True))
            packed += 1
    if not packed:
        drop()
    return packed


def engine_files() -> dict[str, bytes]:
    """What they hold now; what is no ordinary file holds nothing."""
    found = {}
    for path in ENGINE_FILES:
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, "rb") as file:
                found[path] = file.read(1 << 20)
    return found


def changed_files() -> list[str]:
    now = engine_files()
    return [path for path in ENGINE_FILES if now.get(path) != _given.get(path)]


_given: dict[str, bytes] = {}
_since = 0


def remember() -> None:
    """Before anything runs in the box."""
    global _since
    _given.update(engine_files())
    _since = time.time_ns() - _COARSE


def _pack_files() -> int:
    now = engine_files()
    kept = {path: now[path].decode("latin-1") for path in changed_files() if path in now}
    if kept:
        with open(f"{_PACK}/files", "w") as out:
            json.dump(kept, out)
    return len(kept)


def unpack(skip: list[str]) -> None:
    """Put the mounts' contents where they were, but for `skip`, and leave no trace."""
    names = sorted(os.listdir(_PACK)) if os.path.isdir(_PACK) else []
    for name in names:
        with open(f"{_PACK}/{name}", "rb") as file:
            if name == "files":
                _unpack_files(json.load(file), skip)
            else:
                _unpack(file.read)
    drop()


def _unpack_files(kept: dict[str, str], skip: list[str]) -> None:
    for path, text in kept.items():
        if path not in skip:
            fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(fd, "wb") as file:
                file.write(text.encode("latin-1"))


def _unpack(read: Any) -> None:
    row = json.loads(read(sending.LENGTH.unpack(read(sending.LENGTH.size))[0]))
    for name in os.listdir(row[1]):
        with contextlib.suppress(OSError):
            receiving.clear(f"{row[1]}/{name}")
    receiver = receiving.Receiver(row[1], None, receiving.Placement(-1, -1))
    try:
        while not receiver.done and (data := read(1 << 18)):
            receiver.feed(data)
    finally:
        receiver.close()
    os.chown(row[1], *row[5])
    os.chmod(row[1], row[2])


def drop() -> None:
    with contextlib.suppress(FileNotFoundError):
        receiving.clear(_PACK)
