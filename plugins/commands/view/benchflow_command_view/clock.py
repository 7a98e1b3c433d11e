"""Times as logs write them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

__all__ = ["seconds_of"]


def seconds_of(value: Any) -> float | None:
    """Unix time of whatever a log writes: a number of seconds or milliseconds, or ISO 8601."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) / 1000 if value > 1e11 else float(value)
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return None
