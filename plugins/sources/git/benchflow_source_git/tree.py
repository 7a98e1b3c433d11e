"""Writing the files of a commit as they are stored: there is no checkout, so no hook, filter or submodule runs."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError, InfrastructureError
from benchflow_source_git.program import failed, git, git_argv, git_env

__all__ = ["TreeEntry", "listing", "read_entries", "write_entries"]

_FILE, _PROGRAM, _LINK, _SUBMODULE = "100644", "100755", "120000", "160000"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_MAX_ENTRIES = 1_000_000
_MAX_LINK = 4096


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree."""

    mode: str
    sha: str
    path: str


def read_entries(repo: Path, commit: str, path: str) -> tuple[str, list[TreeEntry]]:
    """The object id of the folder or file at `path`, and every file below it, relative to it."""
    what = f"{commit}:{path}"
    kind = git("cat-file", "-t", what, cwd=repo).strip()
    sha = git("rev-parse", "--verify", what, cwd=repo).strip()
    if kind == "blob":
        return sha, [TreeEntry(_FILE, sha, "")]
    entries = []
    with _running(repo, "ls-tree", "-r", "-z", "--full-tree", sha) as process:
        assert process.stdout is not None
        for record in _records(process.stdout):
            mode, _, rest = record.partition(b" ")
            head, _, name = rest.partition(b"\t")
            entries.append(TreeEntry(mode.decode(), head.split()[-1].decode(), _checked(os.fsdecode(name))))
            if len(entries) > _MAX_ENTRIES:
                raise ConfigurationError(f"{what} has more than {_MAX_ENTRIES:,} files.")
    return sha, entries


def write_entries(repo: Path, entries: list[TreeEntry], root: Path, time: int) -> dict[str, Any]:
    """Regular files first, links last: nothing is ever written through a link. Says what was left as it is."""
    pointers = 0
    links: list[tuple[Path, bytes]] = []
    left_out = [entry.path for entry in entries if entry.mode == _SUBMODULE]
    with _running(repo, "cat-file", "--batch") as process:
        for entry in entries:
            target = root / entry.path if entry.path else root
            if entry.mode == _SUBMODULE:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if entry.mode == _LINK:
                links.append((target, _link_target(process, entry)))
            else:
                pointers += _write_file(process, entry, target, time)
    for target, to in links:
        target.symlink_to(os.fsdecode(to))
        os.utime(target, ns=_stamp(time), follow_symlinks=False)
    return {"lfs_pointers": pointers, "submodules": left_out}


def listing(root: Path) -> list[list[Any]]:
    """What is there, with sizes and times: tells whether a copy was touched since it was made."""
    top = str(root)
    if not root.is_dir():
        return [_described("", top)]
    found = []
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            place = os.path.join(folder, name)  # noqa: PTH118 - many files: no Path for each
            found.append(_described(os.path.relpath(place, top), place))
    return sorted(found)


def _described(relative: str, place: str) -> list[Any]:
    info = os.lstat(place)
    if stat.S_ISDIR(info.st_mode):
        return [relative, "folder"]
    return [relative, oct(info.st_mode), info.st_size, info.st_mtime_ns]


def _stamp(time: int) -> tuple[int, int]:
    """The time of the commit, with a fraction that no editor leaves by chance."""
    moment = time * 1_000_000_000 + 271_828_182
    return moment, moment


def _write_file(process: subprocess.Popen[bytes], entry: TreeEntry, target: Path, time: int) -> bool:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        head = b""
        for chunk in _content(process, entry):
            head = head or chunk[: len(_LFS_POINTER)]
            file.write(chunk)
        file.flush()
        os.fchmod(fd, 0o755 if entry.mode == _PROGRAM else 0o644)
        os.utime(fd, ns=_stamp(time))
    return head == _LFS_POINTER


def _link_target(process: subprocess.Popen[bytes], entry: TreeEntry) -> bytes:
    to = b"".join(_content(process, entry))
    if not to or len(to) > _MAX_LINK or b"\0" in to:
        raise ConfigurationError(f"'{entry.path}' is a link to nothing that a link can name.")
    return to


def _content(process: subprocess.Popen[bytes], entry: TreeEntry) -> Iterator[bytes]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(entry.sha.encode() + b"\n")
    process.stdin.flush()
    header = process.stdout.readline().split()
    if len(header) != 3:
        raise InfrastructureError(f"'{entry.path}' is missing in the cached repository.", retryable=False)
    left = int(header[2])
    while left:
        chunk = process.stdout.read(min(left, 1 << 20))
        if not chunk:
            raise InfrastructureError(f"git ended while '{entry.path}' was read.")
        left -= len(chunk)
        yield chunk
    process.stdout.read(1)


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(1 << 16):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole


def _checked(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise ConfigurationError(f"the repository holds a file with a name that no file may have: '{path}'.")
    return path


@contextmanager
def _running(repo: Path, *args: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        git_argv(*args),
        cwd=repo,
        env=git_env(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        assert process.stdin is not None and process.stderr is not None
        process.stdin.close()
        said = process.stderr.read().decode(errors="replace")
        if process.wait():
            raise failed(args, said)
