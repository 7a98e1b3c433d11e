"""Users of a box, read from its own passwd and group files, which the box may have filled with anything."""

from __future__ import annotations

import os
from typing import NamedTuple

_LIMIT = 1024 * 1024


class User(NamedTuple):
    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


ROOT = User("root", 0, 0, (0,), "/root")
"""Whatever the box's files say: they must not turn root into somebody else."""


def _rows(path: str, fields: int) -> list[list[str]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        with open(fd, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(_LIMIT).splitlines()
    except OSError:
        return []
    return [row for row in (line.split(":") for line in lines if not line.startswith("#")) if len(row) >= fields]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) < 2**32 - 1 else None


def names(root: str = "") -> list[str]:
    return [row[0] for row in _rows(f"{root}/etc/passwd", 7)]


def find(wanted: str | None, root: str = "") -> User | None:
    """`name`, `uid`, `name:group` or `uid:gid`; `None` is root. Unknown numbers are users without a name."""
    name, _, group = (wanted or "root").partition(":")
    user = ROOT if name in ("root", "0") else _find_user(name, root)
    if user is None:
        return None
    if user is ROOT and not group:
        return user
    members = [(_number(row[2]), row) for row in _rows(f"{root}/etc/group", 4)]
    if group:
        gid = next((g for g, row in members if row[0] == group), None)
        gid = _number(group) if gid is None else gid
        return None if gid is None else User(user.name, user.uid, gid, (), user.home)
    extra = tuple(g for g, row in members if g is not None and user.name in row[3].split(","))
    return User(user.name, user.uid, user.gid, tuple(sorted({user.gid, *extra})), user.home)


def _find_user(name: str, root: str) -> User | None:
    number = _number(name)
    for row in _rows(f"{root}/etc/passwd", 7):
        uid, gid = _number(row[2]), _number(row[3])
        if uid is not None and gid is not None and (row[0] == name or uid == number):
            return User(row[0], uid, gid, (gid,), row[5] or "/")
    return None if number is None else User(str(number), number, 0, (), "/")
