"""The environment's verdict, as the driver wrote it down after the agent was gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts import TestOutcome, VerifyContext, VerifyResult
from benchflow_core.errors import RewardMissing, VerifierError

__all__ = ["VERDICT", "verify"]

VERDICT: Final = "verifiers_verdict"


async def verify(context: VerifyContext) -> VerifyResult:
    verdict = _read(context.trajectory)
    if verdict is None:
        raise RewardMissing("the environment gave no verdict: the rollout did not come to its end.")
    if error := verdict.get("error"):
        raise VerifierError(f"the environment failed: {error['type']}: {error['message']}")
    given: Mapping[str, Any] = verdict.get("rewards") or {}
    tests = tuple(
        TestOutcome(name, "error" if one is None else "passed" if one["score"] > 0 else "failed", *_weight(one))
        for name, one in given.items()
    )
    metrics = {name: value for name, value in verdict["metrics"].items() if isinstance(value, int | float)}
    rewards = {**{name: float(value) for name, value in metrics.items()}, "reward": float(verdict["reward"])}
    await context.collect(0)
    details = {key: verdict.get(key) for key in ("stop_condition", "turns", "rewards", "metrics")}
    return VerifyResult(rewards, tests=tests, details=details)


def _weight(one: Mapping[str, Any] | None) -> tuple[str, float | None]:
    return ("it was not scored", None) if one is None else (f"weight {one['weight']:g}", float(one["score"]))


def _read(file: Path | None) -> dict[str, Any] | None:
    """The last line of ours. A line of an agent's has a session, whatever kind it claims to be."""
    found = None
    for line in file.open("rb") if file and file.is_file() else ():
        if VERDICT.encode() in line:
            event = json.loads(line)
            if event.get("kind") == VERDICT and event.get("session") is None:
                found = event["data"]
    return found
