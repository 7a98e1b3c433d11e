"""Token counts as agents report them: each in its own words, none of them complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchflow_core.contracts.common import Usage

__all__ = ["session_cost", "turn_usage"]

_LARGEST = 2**63
_NAMES = {
    "input_tokens": ("inputTokens", "input_tokens"),
    "output_tokens": ("outputTokens", "output_tokens"),
    "cache_read_tokens": ("cachedReadTokens", "cachedInputTokens", "cached_input_tokens"),
    "cache_write_tokens": ("cachedWriteTokens", "cacheWriteInputTokens", "cached_write_tokens"),
}


def turn_usage(response: Mapping[str, Any], cost: float | None) -> Usage | None:
    """From a prompt's response: its `usage`, else `_meta.quota.token_count`. `None` where there is nothing."""
    counts: dict[str, Any] = {}
    for source in (response.get("usage"), _at(response, "_meta", "quota", "token_count")):
        if isinstance(source, Mapping):
            counts = {field: _first_count(source, names) for field, names in _NAMES.items()}
            break
    if cost is None and all(value is None for value in counts.values()):
        return None
    return replace(Usage(cost_usd=cost, source="agent_native_acp", complete=False), **counts)


def session_cost(update: Mapping[str, Any]) -> float | None:
    """What the session has cost so far, from a `usage_update` in US dollars."""
    amount = _at(update, "cost", "amount")
    if _at(update, "cost", "currency") != "USD" or not _is_count(amount):
        return None
    return float(amount)


def _first_count(source: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((int(source[name]) for name in names if _is_count(source.get(name))), None)


def _is_count(value: Any) -> bool:
    """Return whether it is a number that a result can hold; NaN, infinity and absurdly large ones are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _at(value: Any, *path: str) -> Any:
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
