"""Watching what code does to the world: the interpreter's audit events, while a block runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["effects"]

_EFFECTS: Final = frozenset(
    {
        *(
            "os.mkdir",
            "os.rename",
            "os.remove",
            "os.rmdir",
            "os.link",
            "os.symlink",
            "os.chmod",
            "os.chown",
            "os.truncate",
        ),
        *("os.putenv", "os.unsetenv", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen"),
        *("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"),
    }
)
_watchers: list[list[str]] = []
_installed = False


@contextmanager
def effects() -> Iterator[list[str]]:
    """Collects writes, processes and network use of the block. Reading is no effect, nor is writing byte code."""
    global _installed
    if not _installed:
        sys.addaudithook(_watch)
        _installed = True
    found: list[str] = []
    _watchers.append(found)
    try:
        yield found
    finally:
        _watchers.remove(found)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watchers:
        return
    if event == "open":
        path, mode, flags = arguments
        writes = bool(set(mode) & set("wax+")) if isinstance(mode, str) else bool((flags or 0) & 3)
        if not writes:
            return
        event, arguments = "open for writing", (path,)
    elif event not in _EFFECTS:
        return
    text = f"{event} {arguments!r}"[:200]
    if "__pycache__" not in text and "/dev/null" not in text:
        for found in _watchers:
            found.append(text)
