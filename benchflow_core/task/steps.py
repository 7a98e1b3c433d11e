"""Rules between the steps of a multi-step task."""

from __future__ import annotations

from collections.abc import Mapping

from benchflow_core.contracts.tasks import Rewards

__all__ = ["meets_minimum"]


def meets_minimum(rewards: Rewards | None, minimum: float | Mapping[str, float] | None) -> bool:
    """May the next step run? No result, or no number for a named key, is below every minimum.

    A single number is about the key `reward`.
    """
    if minimum is None:
        return True
    wanted = minimum if isinstance(minimum, Mapping) else {"reward": minimum}
    found = rewards or {}
    return all(key in found and found[key] >= least for key, least in wanted.items())
