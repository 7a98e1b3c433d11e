"""Who runs in the box, read from /proc: no program of the box is asked."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from typing import NamedTuple


class Entry(NamedTuple):
    pid: int
    parent: int
    state: str


_LISTENING, _LISTEN_STATE = "0A", 10
_NETLINK_SOCK_DIAG, _BY_FAMILY, _DUMP, _ERROR, _DONE = 4, 20, 0x301, 2, 3
_REQUEST = 16 + 56
"""A message's header, and struct inet_diag_req_v2."""
_ENGINE_DNS = bytes([127, 0, 0, 11])
"""127.0.0.11, where an engine answers for names on networks that were made for a task."""


def table() -> list[Entry]:
    if not os.path.isdir("/proc/self"):
        return _table_of_ps()
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


def _table_of_ps() -> list[Entry]:
    """Return the same where there is no /proc."""
    import subprocess

    done = subprocess.run(["ps", "-axo", "pid=,ppid=,state="], capture_output=True, text=True, check=False)
    rows = [row.split() for row in done.stdout.splitlines()]
    return [Entry(int(row[0]), int(row[1]), row[2][0]) for row in rows if len(row) == 3]


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
    """Return the TCP ports that something in this network namespace listens on."""
    found: set[tuple[int, bytes]] = set()
    for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        try:
            found |= _diagnosed(family)
        except (OSError, AttributeError):  # a kernel without this kind of question
            found |= _listed(name)
    return sorted({port for port, address in found if address != _ENGINE_DNS})


def _diagnosed(family: int) -> set[tuple[int, bytes]]:
    """Return listening ports and addresses, from the kernel's socket diagnosis.

    `/proc/net/tcp` says the same, but for that the kernel walks the connections of all namespaces, host included.
    """
    found: set[tuple[int, bytes]] = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        header = struct.pack("=IHHII", _REQUEST, _BY_FAMILY, _DUMP, 1, 0)
        netlink.send(header + struct.pack("=BBxxI48x", family, socket.IPPROTO_TCP, 1 << _LISTEN_STATE))
        while True:
            data = netlink.recv(1 << 17)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind == _DONE:
                    return found
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, 16)[0], "sock_diag")
                found.add((struct.unpack_from(">H", data, 20)[0], data[24:28]))
                data = data[(length + 3) & ~3 :]


def _listed(name: str) -> set[tuple[int, bytes]]:
    found: set[tuple[int, bytes]] = set()
    with contextlib.suppress(OSError, StopIteration), open(f"/proc/net/{name}") as lines:
        next(lines)
        for row in map(str.split, lines):
            address, _, port = row[1].rpartition(":")
            if row[3] == _LISTENING:
                found.add((int(port, 16), bytes.fromhex(address)[3::-1]))
    return found


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
