"""From the rewards of an episode to a score: by a policy that is named, from what our own driver recorded."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchflow_core.contracts import RewardFiles, Rewards, TestOutcome, VerifyContext, VerifyResult
from benchflow_core.errors import RewardMissing, VerifierError

__all__ = ["DEFAULT", "POLICIES", "SOURCE", "OrsRewards", "score"]

SOURCE: Final = "ors"
"""Of the rewards in the event log."""
DEFAULT: Final = "last"
POLICIES: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "last": lambda rewards: rewards[-1],
    "first": lambda rewards: rewards[0],
    "sum": math.fsum,
    "mean": fmean,
    "max": max,
    "min": min,
}


class OrsRewards:
    """No file holds a reward: the verifier gives it."""

    name = "ors"
    wants: tuple[str, ...] = ()

    def parse(self, found: RewardFiles) -> Rewards:
        raise RewardMissing("the reward of an ORS environment comes from its session, not from a file.")

    def combine(self, steps: Sequence[Rewards | None]) -> Rewards:
        return {"reward": fmean((step or {}).get("reward", 0.0) for step in steps) if steps else 0.0}


async def score(context: VerifyContext) -> VerifyResult:
    """An episode that paid nothing is worth 0. That it never finished is said beside the score, not in it."""
    rewards, end = _recorded(context.trajectory)
    if end is None:
        raise VerifierError(
            "no session of the ORS environment was played.", remedy="Leave out --loop-strategy, scenes and prompts."
        )
    policy = str(context.settings.params.get("rewards", DEFAULT))
    value = POLICIES[policy](rewards) if rewards else 0.0
    await context.collect(0)
    finished = TestOutcome("the episode finished", "passed" if end["finished"] else "failed", str(end["reason"]))
    details = {"policy": policy, "rewards": rewards[-1000:], "n_rewards": len(rewards), **end}
    return VerifyResult({"reward": value}, tests=(finished,), details=details)


def _recorded(file: Path | None) -> tuple[list[float], Mapping[str, Any] | None]:
    """What our driver wrote: lines of an agent's turn carry its session, and an agent can send what it likes."""
    rewards: list[float] = []
    end: Mapping[str, Any] | None = None
    if file is None or not file.is_file():
        return rewards, end
    with file.open("rb") as lines:
        for line in lines:
            event = json.loads(line)
            data = event.get("data") or {}
            if event.get("session") or event.get("turn"):
                continue
            if event["kind"] == "reward" and data.get("source") == SOURCE:
                rewards.append(float(data["value"]))
            elif event["kind"] == "ors_ended":
                end = {name: data[name] for name in ("finished", "reason", "calls")}
    return rewards, end
