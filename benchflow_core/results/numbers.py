"""The range of numbers in results: what statistics can add up and every JSON reader can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["LARGEST", "is_number", "without_absurd"]

LARGEST: Final = 2**63


def is_number(value: Any, lowest: float = -LARGEST, highest: float = LARGEST) -> bool:
    """Return whether `value` is a number in range; NaN, infinity and integers of hundreds of digits are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and lowest <= value <= highest


def without_absurd(value: Any) -> Any:
    """Return a copy of JSON data in which each number that is out of range is null: it is not known."""
    if isinstance(value, Mapping):
        return {key: without_absurd(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_absurd(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and not is_number(value):
        return None
    return value
