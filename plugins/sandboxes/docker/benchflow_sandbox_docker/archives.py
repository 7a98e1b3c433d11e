"""A build context as the archive that the engine gets."""

from __future__ import annotations

import asyncio
import contextlib
import stat
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from benchflow_boxkit.context import Context

__all__ = ["name_of", "stream"]

_OUTSIDE: Final = ".benchflow.Dockerfile"
_IGNORE: Final = ".dockerignore"
_CHUNK: Final = 1 << 19


def name_of(context: Context, dockerfile: Path) -> str:
    """What the Dockerfile is called in the archive: as in the context, or by a name of ours if it lies outside."""
    with contextlib.suppress(ValueError, OSError):
        return str(dockerfile.resolve().relative_to(context.root.resolve()))
    return _OUTSIDE


async def stream(context: Context, name: str, dockerfile: str) -> AsyncIterator[bytes]:
    """The archive, owned by root, in pieces; the Dockerfile in it is the given text."""
    parts = _archive(context, name, dockerfile)
    while piece := await asyncio.to_thread(_next, parts):
        yield piece


def _next(parts: Iterator[bytes]) -> bytes:
    found, size = [], 0
    for part in parts:
        found.append(part)
        size += len(part)
        if size >= _CHUNK:
            break
    return b"".join(found)


def _archive(context: Context, name: str, dockerfile: str) -> Iterator[bytes]:
    text = dockerfile.encode()
    yield _member(name, 0o644, len(text)) + text + _padding(len(text))
    if name == _OUTSIDE:
        yield from _ignoring(context, name)
    for relative, path, info in context.entries():
        if relative == name or (name == _OUTSIDE and relative == _IGNORE):
            continue
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISDIR(info.st_mode):
            yield _member(relative, mode, 0, tarfile.DIRTYPE)
        elif stat.S_ISLNK(info.st_mode):
            yield _member(relative, 0o777, 0, tarfile.SYMTYPE, str(path.readlink()))
        else:
            data = path.read_bytes()
            yield _member(relative, mode, len(data)) + data + _padding(len(data))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _ignoring(context: Context, name: str) -> Iterator[bytes]:
    """What an engine reads first and then leaves out: our name for the file is nothing that a COPY should find."""
    own = next((path for relative, path, _ in context.entries() if relative == _IGNORE), None)
    text = (own.read_bytes() + f"\n{name}\n".encode()) if own else f"{name}\n{_IGNORE}\n".encode()
    yield _member(_IGNORE, 0o644, len(text)) + text + _padding(len(text))


def _member(name: str, mode: int, size: int, kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.mode, info.size, info.type, info.linkname = mode, size, kind, target
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
