"""Time as it is written: UTC with its zone, and a monotonic clock for durations."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from functools import lru_cache

__all__ = ["Stopwatch", "now", "stamp"]


def now() -> str:
    """ISO 8601, UTC, microseconds."""
    return stamp(time.time())


def stamp(seconds: float) -> str:
    part, whole = math.modf(seconds)
    carry, micro = divmod(round(part * 1e6), 1_000_000)
    return f"{_second(int(whole) + carry)}.{micro:06d}+00:00"


@lru_cache(maxsize=64)
def _second(whole: int) -> str:
    """Written many times a second, by every event of every rollout."""
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class Stopwatch:
    """Seconds since it was made, on the monotonic clock."""

    __slots__ = ("_start",)

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start
