"""Time as it is written: UTC with its zone, and a monotonic clock for durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime

__all__ = ["Stopwatch", "now", "stamp"]


def now() -> str:
    """ISO 8601, UTC, microseconds."""
    return stamp(time.time())


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


class Stopwatch:
    """Seconds since it was made, on the monotonic clock."""

    __slots__ = ("_start",)

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start
