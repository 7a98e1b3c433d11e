"""Honest aggregation: a score never stands without its coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchflow_core.rollout.result import outcome_of

__all__ = ["SUMMARY_VERSION", "EvaluationResult", "summarize"]

SUMMARY_VERSION = "1.0"


@dataclass
class EvaluationResult:
    """What a finished job says."""

    job_name: str
    total: int = 0
    """Planned rollouts."""
    passed: int = 0
    failed: int = 0
    errored: int = 0
    verifier_errored: int = 0
    reward_sum: float = 0.0
    rewarded: int = 0
    elapsed_sec: float = 0.0
    failures: list[dict[str, Any]] = field(default_factory=list)
    error_categories: dict[str, int] = field(default_factory=dict)
    fidelity: dict[str, int] = field(default_factory=dict)
    isolation: dict[str, int] = field(default_factory=dict)
    job_dir: Path | None = None

    @property
    def scored(self) -> int:
        return self.passed + self.failed

    @property
    def unscored(self) -> int:
        return self.total - self.scored

    @property
    def coverage(self) -> float:
        return self.scored / self.total if self.total else 0.0

    @property
    def score(self) -> float:
        """Passed among the scored; read it together with `coverage` and `bounds`."""
        return self.passed / self.scored if self.scored else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The score if every unscored rollout had failed, and if every one had passed."""
        if not self.total:
            return 0.0, 0.0
        return self.passed / self.total, (self.passed + self.unscored) / self.total

    @property
    def mean_reward(self) -> float | None:
        return self.reward_sum / self.rewarded if self.rewarded else None

    def to_json(self, more: Mapping[str, Any]) -> dict[str, Any]:
        low, high = self.bounds
        return {
            "schema_version": SUMMARY_VERSION,
            "job_name": self.job_name,
            **more,
            "total": self.total,
            "passed": self.passed,
            "failed": self.failed,
            "errored": self.errored,
            "verifier_errored": self.verifier_errored,
            "scored": self.scored,
            "coverage": self.coverage,
            "score": f"{self.score:.1%}",
            "score_ratio": self.score,
            "score_bounds": [low, high],
            "mean_reward": self.mean_reward,
            "error_categories": self.error_categories,
            "image_fidelity": self.fidelity,
            "verifier_isolation": self.isolation,
            "elapsed_sec": round(self.elapsed_sec, 3),
        }


def summarize(
    job_name: str, results: Iterable[Mapping[str, Any]], planned: int, elapsed: float, job_dir: Path | None
) -> EvaluationResult:
    """From the `result.json` of each rollout that counts."""
    total = EvaluationResult(job_name, total=planned, elapsed_sec=elapsed, job_dir=job_dir)
    errors: Counter[str] = Counter()
    for result in results:
        _add(total, result, errors)
    total.error_categories = dict(errors)
    return total


def _add(total: EvaluationResult, result: Mapping[str, Any], errors: Counter[str]) -> None:
    outcome = outcome_of(result)
    setattr(total, outcome, getattr(total, outcome) + 1)
    reward = (result.get("rewards") or {}).get("reward")
    if reward is not None:
        total.reward_sum += reward
        total.rewarded += 1
    for info in (result.get("error_info"), result.get("verifier_error_info")):
        if info:
            errors[f"{info['kind']}:{info['code']}"] += 1
    if reward is not None:
        for counts, key in ((total.fidelity, "image_fidelity"), (total.isolation, "verifier_isolation")):
            value = str(result.get(key))
            counts[value] = counts.get(value, 0) + 1
    if outcome != "passed":
        total.failures.append(_failure(result, outcome))


def _failure(result: Mapping[str, Any], outcome: str) -> dict[str, Any]:
    reason = result.get("error") or result.get("verifier_error") or _reward_text(result.get("rewards"))
    return {"task": result["task_name"], "rollout": result["rollout_name"], "outcome": outcome, "reason": reason}


def _reward_text(rewards: Mapping[str, float] | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in (rewards or {}).items()) or "no reward"
