"""What a box's file system has that its image had not: found, sent as rows, and put into another box.

A row is a length, JSON, and for a file exactly `size` bytes:

    [kind, path, mode, size, extra, [uid, gid], [in the image, changed since the box was furnished], mtime in ns]

`kind` is file, dir, link (extra: target), hard (extra: path of the same file), fifo, gone, end or error. Nothing is
read or written through a link.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from benchflow_boxkit.inside import receiving
from benchflow_boxkit.inside.sending import LENGTH, contents, failure
from benchflow_boxkit.inside.wire import Refused, revive

_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NOT_FILES = frozenset({"/proc", "/sys", "/dev"})
_SHM = "/dev/shm"
_NO_STORE = frozenset(
    {"proc", "sysfs", "devpts", "devtmpfs", "cgroup", "cgroup2", "mqueue", "debugfs", "tracefs", "bpf"}
)
_VENDOR_OWN = frozenset({"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab"})
_MAX_ROW = 1 << 20


class Known(NamedTuple):
    """What the image has at a path."""

    type: str
    mode: int
    uid: int
    gid: int


def mark() -> int:
    """A time of the file system's own clock that everything before is older than, and everything after is not."""
    path = f"/tmp/.benchflow-clock-{os.getpid()}"

    def stamp() -> int:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        return os.lstat(path).st_ctime_ns

    first = stamp()
    while (now := stamp()) <= first:
        time.sleep(0.001)
    os.unlink(path)
    while _clock() < now + 1:
        time.sleep(0.001)
    return now


def _clock() -> int:
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


# --- finding -----------------------------------------------------------------------------------------------------


def _walk(skip: frozenset[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Every path but those below `skip`, a folder before what is in it, without what is no store of files."""
    pseudo = _pseudo_mounts()
    pending = ["/"]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = entry.path
            if path in skip or path in pseudo:
                if path == "/dev" and os.path.isdir(_SHM):
                    pending.append(_SHM)
                continue
            with contextlib.suppress(FileNotFoundError):
                info = entry.stat(follow_symlinks=False)
                yield path, info
                if stat.S_ISDIR(info.st_mode):
                    pending.append(path)


def _pseudo_mounts() -> set[str]:
    found = set(_NOT_FILES)
    with contextlib.suppress(OSError), open("/proc/self/mountinfo") as lines:
        for line in lines:
            fields, _, rest = line.partition(" - ")
            if rest.split()[0] in _NO_STORE:
                found.add(fields.split()[4].encode().decode("unicode_escape"))
    return found


def type_of(mode: int) -> str:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "dir"), (stat.S_ISLNK, "link"))
    return next((name for test, name in kinds if test(mode)), "other")


def index(skip: frozenset[str]) -> Iterator[bytes]:
    """Every path with its type, mode and owner, compressed."""
    packer = zlib.compressobj(6)
    for path, info in _walk(skip):
        row = f"{type_of(info.st_mode)} {stat.S_IMODE(info.st_mode)} {info.st_uid} {info.st_gid} "
        yield packer.compress(row.encode() + os.fsencode(path) + b"\0")
    yield packer.flush()


def read_index(data: bytes) -> dict[str, Known]:
    known = {}
    for row in zlib.decompress(data).split(b"\0"):
        if row:
            kind, mode, uid, gid, path = row.split(b" ", 4)
            known[os.fsdecode(path)] = Known(kind.decode(), int(mode), int(uid), int(gid))
    return known


class Times(NamedTuple):
    """When the box began, and when it was furnished with what a snapshot had."""

    began: int
    furnished: int


def rows(known: dict[str, Known], times: Times, skip: frozenset[str]) -> Iterator[bytes]:
    try:
        seen: set[str] = set()
        first: dict[tuple[int, int], str] = {}
        for path, info in _walk(skip):
            if path in known:
                seen.add(path)
            if path not in _VENDOR_OWN and _differs(known.get(path), info, times.began):
                yield from _row(path, info, path in known, info.st_ctime_ns >= times.furnished, first)
        for path in sorted(known.keys() - seen - _VENDOR_OWN):
            if not os.path.lexists(path):
                yield encode("gone", path, flags=(True, True))
        yield encode("end", "")
    except (OSError, Refused) as error:
        yield failure(error)


def _differs(known: Known | None, info: os.stat_result, began: int) -> bool:
    if known is None:
        return not stat.S_ISSOCK(info.st_mode)
    same = Known(type_of(info.st_mode), stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid) == known
    if known.type == "dir" or not same:
        return not same
    return info.st_ctime_ns >= began


def _row(
    path: str, info: os.stat_result, known: bool, recent: bool, first: dict[tuple[int, int], str]
) -> Iterator[bytes]:
    flags = (known, recent)
    if stat.S_ISDIR(info.st_mode):
        yield encode("dir", path, info, flags=flags)
    elif stat.S_ISLNK(info.st_mode):
        with contextlib.suppress(FileNotFoundError):
            yield encode("link", path, info, os.readlink(path), flags)
    elif stat.S_ISFIFO(info.st_mode):
        yield encode("fifo", path, info, flags=flags)
    elif stat.S_ISREG(info.st_mode):
        if info.st_nlink > 1 and (info.st_dev, info.st_ino) in first:
            yield encode("hard", path, info, first[info.st_dev, info.st_ino], flags)
            return
        try:
            fd = os.open(path, _READ)
        except FileNotFoundError:
            return
        try:
            now = os.fstat(fd)
            if stat.S_ISREG(now.st_mode):
                first.setdefault((now.st_dev, now.st_ino), path)
                yield encode("file", path, now, flags=flags)
                yield from contents(fd, now.st_size)
        finally:
            os.close(fd)


def encode(
    kind: str,
    path: str,
    info: os.stat_result | None = None,
    extra: str = "",
    flags: tuple[bool, bool] = (False, True),
) -> bytes:
    mode, size, owner, when = 0, 0, (0, 0), 0
    if info is not None:
        mode, owner, when = stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid), info.st_mtime_ns
        size = info.st_size if kind == "file" else 0
    body = json.dumps([kind, path, mode, size, extra, owner, flags, when], separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


# --- reading rows --------------------------------------------------------------------------------------------------


class Reader:
    """Fed with a stream of rows as it comes. `row` is called for each, `data` for the bytes of a file."""

    def __init__(self, row: Callable[[list[Any]], None], data: Callable[[bytes], None]) -> None:
        self._row, self._data = row, data
        self._buffer = bytearray()
        self._left = 0
        self.done = False

    def feed(self, data: bytes) -> None:
        buffer, at = self._buffer, 0
        buffer += data
        while not self.done:
            if self._left:
                part = bytes(buffer[at : at + self._left])
                if not part:
                    break
                self._data(part)
                at, self._left = at + len(part), self._left - len(part)
                continue
            if len(buffer) - at < LENGTH.size:
                break
            length = LENGTH.unpack_from(buffer, at)[0]
            if length > _MAX_ROW:
                raise Refused("a row is too long")
            end = at + LENGTH.size + length
            if len(buffer) < end:
                break
            self._take(json.loads(bytes(buffer[at + LENGTH.size : end])))
            at = end
        del buffer[:at]

    def _take(self, row: Any) -> None:
        if not isinstance(row, list) or len(row) not in (6, 8):
            raise Refused("a row makes no sense")
        if row[0] == "error":
            raise revive(row[4])
        if row[0] == "end":
            self.done = True
        elif not isinstance(row[1], str) or not row[1].startswith("/") or not isinstance(row[3], int) or row[3] < 0:
            raise Refused("a row makes no sense")
        elif any(part in ("", ".", "..") for part in row[1][1:].split("/")) or "\0" in row[1]:
            raise Refused(f"unsafe path {row[1]!r}")
        else:
            self._left = row[3] if row[0] == "file" else 0
            self._row(row)


# --- putting -------------------------------------------------------------------------------------------------------


class Putting:
    """Makes the file system like the rows say. What is gone comes first, deepest first."""

    def __init__(self) -> None:
        self.reader = Reader(self._row, self._write)
        self._file = -1
        self._finish: Callable[[], None] = lambda: None
        self._times: list[tuple[str, int]] = []

    @property
    def done(self) -> bool:
        return self.reader.done

    def feed(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        self.reader.feed(data)
        if self.done:
            self._end_file()
            for path, when in reversed(self._times):
                with contextlib.suppress(OSError):
                    os.utime(path, ns=(when, when), follow_symlinks=False)

    def _row(self, row: list[Any]) -> None:
        self._end_file()
        kind, path, mode, _, extra, (uid, gid), _, when = row
        parent, name = _parent(path, make=kind != "gone")
        if parent < 0:
            return
        try:
            self._put(kind, name, parent, mode, extra, uid, gid)
        finally:
            os.close(parent)
        if kind == "dir":
            self._times.append((path, when))
        elif kind == "file":
            fd = self._file
            self._finish = lambda: os.utime(fd, ns=(when, when))
        elif kind == "link":
            with contextlib.suppress(OSError):
                os.utime(path, ns=(when, when), follow_symlinks=False)

    def _put(self, kind: str, name: str, parent: int, mode: int, extra: str, uid: int, gid: int) -> None:
        if kind == "gone":
            _remove(name, parent)
            return
        if kind == "dir":
            _make_folder(name, parent, mode, uid, gid)
            return
        receiving.clear(name, parent)
        if kind == "link":
            os.symlink(extra, name, dir_fd=parent)
        elif kind == "fifo":
            os.mkfifo(name, 0o600, dir_fd=parent)
        elif kind == "hard":
            there, other = _parent(extra, make=False)
            if there >= 0:
                os.link(other, name, src_dir_fd=there, dst_dir_fd=parent, follow_symlinks=False)
                os.close(there)
            return
        elif kind == "file":
            self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=parent)
            os.fchown(self._file, uid, gid)
            os.fchmod(self._file, mode)
            return
        else:
            raise Refused(f"unknown kind {kind!r}")
        os.chown(name, uid, gid, dir_fd=parent, follow_symlinks=False)
        if kind == "fifo":
            os.chmod(name, mode, dir_fd=parent)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def _end_file(self) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):
                # Writing takes setuid away; the mode is said once more.
                mode = stat.S_IMODE(os.fstat(self._file).st_mode)
                os.fchmod(self._file, mode)
            self._finish()
            os.close(self._file)
            self._file = -1


def _parent(path: str, *, make: bool) -> tuple[int, str]:
    """The folder that holds `path`. What is no folder on the way is replaced by one, or there is nothing to do: -1."""
    *folders, name = path.strip("/").split("/")
    fd = os.open("/", _FOLDER)
    for folder in folders:
        try:
            below = os.open(folder, _FOLDER, dir_fd=fd)
        except OSError:
            if not make:
                os.close(fd)
                return -1, name
            receiving.clear(folder, fd)
            os.mkdir(folder, 0o755, dir_fd=fd)
            below = os.open(folder, _FOLDER, dir_fd=fd)
        os.close(fd)
        fd = below
    return fd, name


def _make_folder(name: str, parent: int, mode: int, uid: int, gid: int) -> None:
    try:
        fd = os.open(name, _FOLDER, dir_fd=parent)
    except OSError:
        receiving.clear(name, parent)
        os.mkdir(name, 0o700, dir_fd=parent)
        fd = os.open(name, _FOLDER, dir_fd=parent)
    os.fchown(fd, uid, gid)
    os.fchmod(fd, mode)
    os.close(fd)


def _remove(name: str, parent: int) -> None:
    """A file, or a folder with nothing left in it."""
    try:
        os.unlink(name, dir_fd=parent)
    except (IsADirectoryError, PermissionError):
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        pass
