"""What happens to the host itself while rollouts run: its load, and times when it stood still.

A suspended machine or a frozen process is nobody's time: it is never counted against an agent. `CLOCK_MONOTONIC`
stands still during a suspend, which shows as a step against `CLOCK_BOOTTIME`; a frozen process shows as a gap between
two beats.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchflow_core.quick import dataclass

__all__ = ["HostWatch", "LoadMark", "host_cpus", "host_memory_mb"]

_BEAT = 1.0
_GAP = 5.0
"""Seconds without a beat that count as standing still: far beyond what a busy machine does to an event loop."""
_FRESH = 0.05
_FULL = 256 * 1024
"""Bytes left on a disk that is full: what is written then is cut short or refused."""
_BUSY, _STALLED, _LOW_MEMORY = 0.95, 0.25, 0.05


def _boottime() -> float:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


@dataclass(frozen=True, slots=True)
class LoadMark:
    """The host's counters at one moment."""

    at: float
    lost: float
    busy: float
    total: float
    stalled: float | None
    memory: float
    """The share that is free."""


class HostWatch:
    """Beats while a job runs. Everything is also right between two beats."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        boot: Callable[[], float] = _boottime,
        gap: float = _GAP,
        folder: Path | None = None,
    ) -> None:
        """`folder`: where boxes on this host keep their files; whether its disk is full is watched."""
        self._clock, self._boot, self._gap = clock, boot, gap
        self._folder, self._last_full = folder, -1.0
        self._beat = clock()
        self._offset = boot() - clock()
        self._lost = 0.0
        self._beating = False
        self._last: LoadMark | None = None
        self._task: asyncio.Task[None] | None = None

    def lost(self) -> float:
        """Seconds so far in which the host or this process stood still."""
        return self._lost + sum(self._new())

    def beat(self) -> None:
        self._beating = True
        suspended, frozen = self._new()
        self._lost += suspended + frozen
        self._offset += suspended
        self._beat = self._clock()
        self._look_at_disk()

    def was_full(self, mark: LoadMark) -> bool:
        """Return whether the disk was seen full since then."""
        self._look_at_disk()
        return self._last_full >= mark.at

    def _look_at_disk(self) -> None:
        with suppress(OSError):
            if self._folder is not None:
                found = os.statvfs(self._folder)
                if found.f_bavail * found.f_frsize < _FULL:
                    self._last_full = self._clock()

    def _new(self) -> tuple[float, float]:
        """Since the last beat: suspended, and frozen."""
        suspended = self._boot() - self._clock() - self._offset
        frozen = self._clock() - self._beat - _BEAT if self._beating else 0.0
        return suspended if suspended >= 1.0 else 0.0, frozen if frozen >= self._gap else 0.0

    def mark(self) -> LoadMark:
        """Read at most every few moments: rollouts that begin or end together share one look."""
        at = self._clock()
        if self._last is None or at - self._last.at > _FRESH:
            self._last = LoadMark(at, self.lost(), *_cpu_times(), _cpu_stall(), _memory_left())
        return self._last

    def since(self, mark: LoadMark) -> dict[str, Any]:
        """How busy the host was since then. `contended`: it had less to give than a rollout may expect."""
        now = self.mark()
        total = now.total - mark.total
        busy = (now.busy - mark.busy) / total if total > 0 else 0.0
        span = max(now.at - mark.at, 1e-9)
        stalled = None if now.stalled is None or mark.stalled is None else (now.stalled - mark.stalled) / span
        waited = stalled if stalled is not None else busy / _BUSY * _STALLED
        contended = waited >= _STALLED or now.memory < _LOW_MEMORY
        return {
            "cpu_busy": round(busy, 3),
            "cpu_stalled": None if stalled is None else round(stalled, 3),
            "memory_left": round(now.memory, 3),
            "stood_still_sec": round(now.lost - mark.lost, 3),
            "contended": contended and span >= 1.0,
        }

    def start(self) -> None:
        """Needs a running event loop. Safe to call again."""
        if self._task is None:
            self._beat = self._clock()
            self._beating = True
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            self.beat()

    async def close(self) -> None:
        task, self._task = self._task, None
        self._beating = False
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _cpu_times() -> tuple[float, float]:
    """Busy and total seconds of all CPUs."""
    try:
        with open("/proc/stat", "rb") as stream:  # noqa: PTH123  one line of a large file, twice per rollout
            values = [int(v) for v in stream.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0.0, 0.0
    idle = values[3] + values[4]
    return float(sum(values) - idle), float(sum(values))


def _cpu_stall() -> float | None:
    """Seconds in which something that wanted to run had to wait, where the kernel counts them."""
    try:
        with open("/proc/pressure/cpu", "rb") as stream:  # noqa: PTH123
            return int(stream.readline().rpartition(b"total=")[2]) / 1e6
    except (OSError, ValueError):
        return None


def _memory_left() -> float:
    values = _meminfo()
    return values.get("MemAvailable", 1) / values.get("MemTotal", 1)


def _meminfo() -> dict[str, int]:
    try:
        with open("/proc/meminfo", "rb") as stream:  # noqa: PTH123
            rows = [stream.readline().split() for _ in range(3)]
        return {row[0].rstrip(b":").decode(): int(row[1]) for row in rows}
    except (OSError, ValueError, IndexError):
        return {}


def host_cpus() -> float:
    """CPUs this process may use: its affinity, and its control group's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            return max(min(float(count), int(quota) / int(period)), 1.0)
    return float(count)


def host_memory_mb() -> float:
    """Memory that is free to use now, within the control group's limit."""
    values = _meminfo()
    free = values.get("MemAvailable", 4 * 1024 * 1024) / 1024
    with suppress(OSError, ValueError):
        most = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        if most != "max":
            free = min(free, (int(most) - int(used)) / 1024 / 1024)
    return free
