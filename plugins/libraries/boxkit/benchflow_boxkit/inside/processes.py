"""Who runs in the box, read from /proc: no program of the box is asked."""

from __future__ import annotations

import os
from typing import NamedTuple


class Entry(NamedTuple):
    pid: int
    parent: int
    state: str


_ENGINE_DNS = "0B00007F"
"""127.0.0.11, where an engine answers for names on networks that were made for a task."""


def table() -> list[Entry]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b") ")[2].split()
            except OSError:
                continue
            found.append(Entry(int(name), int(fields[1]), chr(fields[0][0])))
    return found


def alive() -> list[Entry]:
    """Everything but ourselves."""
    return [entry for entry in table() if entry.state not in "ZX" and entry.pid != os.getpid()]


def descendants(root: int) -> list[Entry]:
    """What came from a process and still lives, that process not included."""
    children: dict[int, list[Entry]] = {}
    for entry in table():
        children.setdefault(entry.parent, []).append(entry)
    found: list[Entry] = []
    pending = [root]
    while pending:
        for entry in children.get(pending.pop(), ()):
            pending.append(entry.pid)
            if entry.state not in "ZX":
                found.append(entry)
    return found


def in_vfork(pid: int) -> bool:
    """It waits, and cannot be stopped, for a child that stands still: so it does nothing either."""
    forks = {"x86_64": (b"56", b"58", b"435"), "aarch64": (b"220", b"435")}.get(os.uname().machine, ())
    try:
        with open(f"/proc/{pid}/syscall", "rb") as file:
            return file.read().split()[0] in forks
    except (OSError, IndexError):
        return False


def listening() -> list[int]:
    ports: set[int] = set()
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{name}") as lines:
                next(lines)
                rows = [line.split() for line in lines]
        except (OSError, StopIteration):
            continue
        found = (row[1].rsplit(":", 1) for row in rows if row[3] == "0A")
        ports.update(int(port, 16) for address, port in found if address != _ENGINE_DNS)
    return sorted(ports)


_COUNTED = {
    "memory": ("oom_kill", ("memory.events", "memory/memory.oom_control")),
    "pids": ("max", ("pids.events", "pids/pids.events")),
}
"""The kernel's word for it, and the file in either version of control groups."""


def limits_hit() -> dict[str, int]:
    """How often the memory limit has killed something in this box, and the limit of processes refused one."""
    return {name: _count(word, files) for name, (word, files) in _COUNTED.items()}


def _count(word: str, files: tuple[str, ...]) -> int:
    for path in files:
        try:
            with open(f"/sys/fs/cgroup/{path}") as file:
                rows = [line.split() for line in file]
        except OSError:
            continue
        return next((int(row[1]) for row in rows if row and row[0] == word), 0)
    return 0
