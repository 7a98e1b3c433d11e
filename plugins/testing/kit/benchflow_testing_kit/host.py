"""Looking at the host from a test: processes, memory, waiting."""

from __future__ import annotations

import asyncio
import os
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Peak", "eventually", "host_processes", "open_descriptors", "peak_memory", "tree_digest", "within"]

PATIENCE: Final = float(os.environ.get("BENCHFLOW_TESTING_PATIENCE", "1"))
"""How many times longer than usual to wait for what ought to happen: more than 1 for a slow backend."""


def within(seconds: float) -> asyncio.Timeout:
    """`asyncio.timeout`, with patience."""
    return asyncio.timeout(seconds * PATIENCE)


def host_processes(marker: str, *, environment: bool = False) -> list[int]:
    """Processes of this host whose command line (or environment too) holds the marker; none where there is no /proc."""
    wanted, found = marker.encode(), []
    for entry in Path("/proc").glob("[0-9]*") if Path("/proc/self").exists() else ():
        for name in ("cmdline", "environ") if environment else ("cmdline",):
            try:
                held = wanted in (entry / name).read_bytes()
            except OSError:
                continue
            if held and int(entry.name) != os.getpid():
                found.append(int(entry.name))
                break
    return found


async def eventually(condition: Callable[[], bool | Awaitable[bool]], *, seconds: float = 20.0) -> bool:
    """Whether the condition comes true in time."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        found = condition()
        if found if isinstance(found, bool) else await found:
            return True
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.1)


def open_descriptors() -> int:
    """How many file descriptors this process holds; 0 where that cannot be seen."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


@dataclass
class Peak:
    """Most memory that was allocated at once, filled in when the block ends."""

    bytes: int = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measures what this process allocates inside the block, on top of what it had before."""
    peak = Peak()
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield peak
    finally:
        peak.bytes = tracemalloc.get_traced_memory()[1] - before
        if not running:
            tracemalloc.stop()


def tree_digest(root: Path) -> dict[str, tuple[int, int, bytes | str]]:
    """Every path below a folder with mode, time and content: equal before and after something that must not write."""
    found: dict[str, tuple[int, int, bytes | str]] = {}
    for path in sorted(root.rglob("*")):
        stat = path.lstat()
        content: bytes | str = ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found
