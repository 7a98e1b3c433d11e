"""Token counts in one way of counting, whatever the provider's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from benchflow_core.contracts import Usage

__all__ = ["added", "at", "count", "usage_of"]


def count(source: Any, *path: str) -> int | None:
    """A count that was reported, or `None`. What is not a number is not a count."""
    value = at(source, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def added(*values: int | None) -> int | None:
    """Their sum; `None` only when none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def usage_of(
    input_tokens: int | None,
    output_tokens: int | None,
    cache_read: int | None = None,
    cache_write: int | None = None,
    cost: Any = None,
) -> Usage:
    known = input_tokens is not None or output_tokens is not None
    money = isinstance(cost, int | float) and not isinstance(cost, bool) and math.isfinite(cost) and cost >= 0
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        cost_usd=float(cost) if money else None,
        requests=1,
        source="provider_response" if known else "unavailable",
        complete=input_tokens is not None and output_tokens is not None,
    )
