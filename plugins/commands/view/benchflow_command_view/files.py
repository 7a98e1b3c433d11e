"""The files of a rollout: listed without following a link, shown as text or as a picture, never as a page."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

__all__ = ["listing", "read_file"]

_MOST = 2000
_HEAD, _TAIL = 256 << 10, 32 << 10
_LARGEST_IMAGE = 1 << 20
_PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def file_id(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def listing(root: Path) -> dict[str, Any]:
    """Regular files by path and size. `more`: there are others that are not listed."""
    found: list[dict[str, Any]] = []
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            try:
                state = path.lstat()
            except OSError:
                continue
            if not stat.S_ISREG(state.st_mode):
                continue
            if len(found) >= _MOST:
                return {"files": found, "more": True}
            inside = path.relative_to(root).as_posix()
            shown = inside.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            found.append({"id": file_id(inside), "path": shown, "size": state.st_size})
    return {"files": found, "more": False}


def read_file(root: Path, wanted: str) -> dict[str, Any]:
    """The beginning and the end of one of the listed files. Raises `KeyError`."""
    for folder, _, names in os.walk(root):
        for name in names:
            inside = Path(folder, name).relative_to(root).as_posix()
            if file_id(inside) == wanted:
                return _read(root, inside)
    raise KeyError(wanted)


def _read(root: Path, inside: str) -> dict[str, Any]:
    fd = _open(root, inside)
    with os.fdopen(fd, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(_HEAD)
        found = {"path": inside.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), "size": size}
        if (mime := _picture(data)) and size <= _LARGEST_IMAGE:
            whole = data + stream.read()
            return {**found, "image": f"data:{mime};base64,{base64.b64encode(whole).decode()}"}
        if b"\0" in data[:8192]:
            return {**found, "binary": True}
        rest = size - len(data)
        if rest > 0:
            stream.seek(max(len(data), size - _TAIL))
            found |= {"tail": stream.read().decode("utf-8", "replace"), "left_out": max(0, rest - _TAIL)}
        return {**found, "text": data.decode("utf-8", "replace")}


def _open(root: Path, inside: str) -> int:
    """Step by step below `root`, through no link; a pipe or a device is not opened."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, name = inside.split("/")
        for part in folders:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = inner
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise KeyError(inside)
        return found
    except OSError as error:
        raise KeyError(inside) from error
    finally:
        os.close(fd)


def _picture(data: bytes) -> str | None:
    """By its content. SVG is text here: it can hold a script."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in _PICTURES.items() if data.startswith(start)), None)
