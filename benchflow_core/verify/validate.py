"""Check the type and ranges of a verifier's result: its numbers end up in files, statistics and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchflow_core.contracts.verifiers import TestOutcome, VerifyResult
from benchflow_core.errors import RewardInvalid
from benchflow_core.plugins.guard import wrong_type
from benchflow_core.results.numbers import is_number

__all__ = ["validate_result"]


def validate_result(who: str, result: Any) -> VerifyResult:
    """Return the result, its rewards as floats. Raises `RewardInvalid` or `PluginFailed`, which name the plugin."""
    if not isinstance(result, VerifyResult):
        raise wrong_type(who, "verify", result, VerifyResult)
    if not isinstance(result.rewards, Mapping):
        raise RewardInvalid(f"{who} gave rewards that are no mapping: {result.rewards!r:.80}.")
    for name, value in result.rewards.items():
        if not isinstance(name, str) or not (isinstance(value, bool) or is_number(value)):
            raise RewardInvalid(
                f"{who} gave the reward {name!r:.40} as {value!r:.40}, which is no number from -2^63 to 2^63."
            )
    for test in result.tests:
        if not isinstance(test, TestOutcome):
            raise wrong_type(who, "verify", test, TestOutcome)
    return replace(result, rewards={name: float(value) for name, value in result.rewards.items()})
