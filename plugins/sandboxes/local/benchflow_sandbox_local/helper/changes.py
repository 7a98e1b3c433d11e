"""What a captured layer changes, against the layers below it; and undoing chosen paths of it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchflow_sandbox_local.helper import tree

_COMPARE = 1 << 20
_UNMAPPED = 65534


class Part(NamedTuple):
    """One mount of a box: where it is, its captured layer, and the layers below, topmost first."""

    at: str
    layer: str
    lower: tuple[str, ...]
    full: bool = False
    """The layer holds everything, not only what differs (a box without overlays)."""


def compare(parts: list[Part]) -> list[list[Any]]:
    """Rows of `Change`: path, kind, type, mode, uid, size, target, was; sorted by path."""
    rows: list[list[Any]] = []
    for part in parts:
        if os.path.isdir(part.layer):
            top, below = os.lstat(part.layer), os.lstat(part.lower[0])
            if not _same(part.layer, top, part.lower[0], below):
                rows.append(_row(part.at, "modified", part.layer, top, below))
            rows += _folder(part.layer, list(part.lower), part.at.rstrip("/"), part.full)
    return sorted(rows, key=lambda row: str(row[0]))


# --- looking ---------------------------------------------------------------------------------------------------


def _lookup(lower: list[str], name: str) -> tuple[os.stat_result | None, str, list[str]]:
    """What the stack of directories `lower` shows under `name`: its status, its path, and if a directory, its stack."""
    found: list[str] = []
    first: os.stat_result | None = None
    for folder in lower:
        path = f"{folder}/{name}"
        try:
            info = os.lstat(path)
        except OSError:
            continue
        if tree.is_whiteout(info):
            break
        if not stat.S_ISDIR(info.st_mode):
            if first is None:
                return info, path, []
            break
        first = first or info
        found.append(path)
        if tree.is_opaque(path):
            break
    return first, found[0] if found else "", found


def _names(lower: list[str]) -> list[str]:
    """Everything a stack of directories shows."""
    gone: set[str] = set()
    shown: dict[str, None] = {}
    for folder in lower:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in gone or entry.name in shown:
                    continue
                if not entry.is_file(follow_symlinks=False) and tree.is_whiteout(entry.stat(follow_symlinks=False)):
                    gone.add(entry.name)
                else:
                    shown[entry.name] = None
    return list(shown)


def _folder(layer: str, lower: list[str], inside: str, full: bool) -> Iterator[list[Any]]:
    """Walks without recursion: a box may nest as deep as it likes."""
    pending = [(layer, lower, inside, full)]
    while pending:
        layer, lower, inside, full = pending.pop()
        try:
            names = os.listdir(layer)
        except OSError:  # a path longer than the kernel takes: reported as its topmost directory
            continue
        full = full or tree.is_opaque(layer)  # and whatever is below it
        if lower and full:
            for name in set(_names(lower)) - set(names):
                yield _deleted(f"{inside}/{name}", _lookup(lower, name)[0])
        for name in names:
            path, shown = f"{layer}/{name}", f"{inside}/{name}"
            try:
                info = os.lstat(path)
            except OSError:
                continue
            below, below_path, stack = _lookup(lower, name)
            if tree.is_whiteout(info):
                if below is not None:
                    yield _deleted(shown, below)
                continue
            if below is None or not _same(path, info, below_path, below):
                yield _row(shown, "added" if below is None else "modified", path, info, below)
            if stat.S_ISDIR(info.st_mode):
                pending.append((path, stack, shown, full))


def _same(path: str, info: os.stat_result, other: str, below: os.stat_result) -> bool:
    if info.st_mode != below.st_mode:
        return False
    if (info.st_uid, info.st_gid) != (below.st_uid, below.st_gid) and below.st_uid != _UNMAPPED:
        return False
    if stat.S_ISLNK(info.st_mode):
        return os.readlink(path) == os.readlink(other)
    if stat.S_ISREG(info.st_mode):
        return info.st_size == below.st_size and (
            os.path.samestat(info, below) or (_same_bytes(path, other) and _rights(path) == _rights(other))
        )
    return stat.S_ISDIR(info.st_mode) or info.st_rdev == below.st_rdev


def _same_bytes(path: str, other: str) -> bool:
    try:
        with open(path, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
            while True:
                one, two = a.read(_COMPARE), b.read(_COMPARE)
                if one != two:
                    return False
                if not one:
                    return True
    except OSError:
        return False


def _rights(path: str) -> bytes:
    """The capabilities that a program gets from its file."""
    try:
        return os.getxattr(path, "security.capability", follow_symlinks=False)
    except OSError:
        return b""


def _type(mode: int) -> str:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "dir"), (stat.S_ISLNK, "link"))
    return next((name for test, name in kinds if test(mode)), "other")


def _row(shown: str, kind: str, path: str, info: os.stat_result, below: os.stat_result | None) -> list[Any]:
    target = os.readlink(path) if stat.S_ISLNK(info.st_mode) else None
    size = info.st_size if stat.S_ISREG(info.st_mode) else 0
    was = _type(below.st_mode) if below and stat.S_IFMT(below.st_mode) != stat.S_IFMT(info.st_mode) else None
    return [shown, kind, _type(info.st_mode), stat.S_IMODE(info.st_mode), info.st_uid, size, target, was]


def _deleted(shown: str, below: os.stat_result | None) -> list[Any]:
    kind = _type(below.st_mode) if below else "other"
    return [shown, "deleted", kind, 0, 0, 0, None, kind]


# --- undoing ---------------------------------------------------------------------------------------------------


def revert(parts: list[Part], paths: list[str]) -> None:
    """Put `paths` back in the layers of `parts`, which must be nobody else's."""
    ordered = sorted(parts, key=lambda part: len(part.at), reverse=True)
    for path in paths:
        part = next(p for p in ordered if p.at == "/" or path == p.at or path.startswith(f"{p.at}/"))
        relative = path.removeprefix(part.at).strip("/")
        if relative:
            _revert(part, relative.split("/"))
        else:
            _like(part.layer, os.lstat(part.lower[0]))


def _revert(part: Part, names: list[str]) -> None:
    layer, lower = part.layer, list(part.lower)
    for name in names[:-1]:
        _reveal(layer, lower, part.full)
        path = f"{layer}/{name}"
        below, below_path, stack = _lookup(lower, name)
        info = _status(path)
        if info is None and not part.full:
            return  # the layer does not touch anything here
        if info is None or not stat.S_ISDIR(info.st_mode):
            if below is None or not stat.S_ISDIR(below.st_mode):
                return
            tree.remove(path)
            os.mkdir(path)
            _like(path, below)
            if not part.full:
                _hide(path, stack)
        layer, lower = path, stack
    _reveal(layer, lower, part.full)
    path = f"{layer}/{names[-1]}"
    below, below_path, _ = _lookup(lower, names[-1])
    info = _status(path)
    if info is not None and below is not None and stat.S_ISDIR(info.st_mode) and stat.S_ISDIR(below.st_mode):
        _like(path, below)  # its entries are paths of their own
        return
    tree.remove(path)
    if part.full and below is not None:
        _bring_back(below_path, path, below)


def _bring_back(source: str, path: str, below: os.stat_result) -> None:
    if stat.S_ISDIR(below.st_mode):
        tree.copy(source, path)
    else:
        tree.copy_one(source, path)


def _reveal(layer: str, lower: list[str], full: bool) -> None:
    """Make an opaque directory show the layers below again, hiding one by one what it hid at once."""
    if full or not tree.is_opaque(layer):
        return
    _hide(layer, lower)
    for name in os.listdir(layer):  # what was hidden with it stays so
        if os.path.isdir(path := f"{layer}/{name}") and not os.path.islink(path):
            os.setxattr(path, "user.overlay.opaque", b"y")
    os.removexattr(layer, "user.overlay.opaque")


def _hide(layer: str, lower: list[str]) -> None:
    present = set(os.listdir(layer))
    for name in _names(lower):
        if name not in present:
            os.mknod(f"{layer}/{name}", stat.S_IFCHR, 0)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _like(path: str, below: os.stat_result) -> None:
    if below.st_uid != _UNMAPPED:
        os.chown(path, below.st_uid, below.st_gid)
    os.chmod(path, stat.S_IMODE(below.st_mode))
