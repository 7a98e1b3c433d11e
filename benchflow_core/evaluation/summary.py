"""Count rollouts: a score never stands without its coverage, its error, and what was mixed into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchflow_core.contracts.outcomes import CHOICES, arm_of, contested_scores, counted, outcome_of, team_of
from benchflow_core.contracts.results import EvaluationResult, TaskScores
from benchflow_core.evaluation.interval import clustered_error, effective_interval
from benchflow_core.results.reader import statistics_of

__all__ = ["EvaluationResult", "arm_of", "summarize", "team_of"]


def summarize(
    job_name: str,
    results: Iterable[Mapping[str, Any]],
    planned: int | None = None,
    elapsed: float = 0.0,
    job_dir: Path | None = None,
    arms: Mapping[str, int] | None = None,
) -> EvaluationResult:
    """Count results one by one, each a `result.json` that counts or a row with its keys; none of them is kept.

    `planned` counts rollouts that left no result, too; `arms` does so for each arm, in the order of the job.
    """
    wanted, tallies, failures = arms or {}, dict[str, _Tally](), []
    for result in results:
        name, outcome = arm_of(result), outcome_of(result)
        tallies.setdefault(name, _Tally()).add(result, outcome)
        if outcome != "passed":
            failures.append(_failure(result, outcome, name))
    found = {name: tallies.get(name) or _Tally() for name in [*wanted, *sorted(tallies.keys() - wanted.keys())]}
    whole = _Tally()
    for tally in found.values():
        whole.join(tally)
    summary = whole.result(job_name, planned, alone=len(found) < 2)
    if len(found) > 1:
        summary.arms = {name: tally.result(name, wanted.get(name)) for name, tally in found.items()}
    for part in (summary, *summary.arms.values()):
        part.statistics = statistics_of(part)
    summary.elapsed_sec, summary.job_dir, summary.failures = elapsed, job_dir, failures
    return summary


class _Tally:
    """The counts of rollouts that were run alike."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.unscored: Counter[str] = Counter()
        self.usage: Counter[str] = Counter()
        self.strata: Counter[tuple[str, str, str]] = Counter()
        self.contested: Counter[tuple[str, str]] = Counter()
        """By choice, how many of the contested ones would pass and be scored; `counted` is how they count here."""
        self.tasks: dict[str, TaskScores] = {}

    def add(self, result: Mapping[str, Any], outcome: str) -> None:
        self.counts[outcome] += 1
        key = f"{result['task_name']} {result.get('task_digest') or ''}"  # a task that was changed is another task
        task = self.tasks.get(key)
        if task is None:
            task = self.tasks[key] = TaskScores(result["task_name"])
        infos = [info for info in (result.get("error_info"), result.get("verifier_error_info")) if info]
        self.errors.update(f"{info['kind']}:{info['code']}" for info in infos)
        reward = (result.get("rewards") or {}).get("reward")
        if reward is None:
            self.unscored[str(infos[0]["kind"]) if infos else "no-reward"] += 1
        else:
            task.rewards.append(float(reward))
            task.passes.append(float(outcome == "passed"))
            self.strata[str(result.get("image_fidelity")), str(result.get("verifier_isolation")), outcome] += 1
        self._add_contested(result, outcome)
        self._add_usage(result)

    def _add_contested(self, result: Mapping[str, Any], outcome: str) -> None:
        scores = contested_scores(result)
        if scores is None or scores["settled"]:
            return
        outcomes: dict[str, str] = {
            "counted": outcome,
            **{choice: outcome_of(counted(result, choice)) for choice in CHOICES},
        }
        for choice, found in outcomes.items():
            self.contested[choice, "passed"] += found == "passed"
            self.contested[choice, "scored"] += found in ("passed", "failed")
            self.contested[choice, "all"] += 1

    def _add_usage(self, result: Mapping[str, Any]) -> None:
        """Add what is known, and count how many rollouts it is known for: what nobody reported is not zero."""
        for name, key in (("total_skill_invocations", "n_skill_invocations"), ("total_tool_calls", "n_tool_calls")):
            if result.get(key) is not None:
                self.usage[name] += result[key]
        used = result.get("agent_result") or {}
        for name, key in (("total_tokens", "total_tokens"), ("total_cost_usd", "cost_usd")):
            if used.get(key) is not None:
                self.usage[name] += used[key]
                self.usage[f"{name}_known"] += 1

    def join(self, other: _Tally) -> None:
        for name in ("counts", "errors", "unscored", "usage", "strata", "contested"):
            getattr(self, name).update(getattr(other, name))
        for key, task in other.tasks.items():
            own = self.tasks.setdefault(key, TaskScores(task.name))
            own.passes += task.passes
            own.rewards += task.rewards

    def result(self, name: str, planned: int | None = None, *, alone: bool = True) -> EvaluationResult:
        """Return the counts, and where the rollouts are of one arm `alone` also the mean, the errors, the interval."""
        seen = self.counts.total()
        missing = max(0, (planned or 0) - seen)
        counts: dict[str, Any] = dict(self.counts)
        result = EvaluationResult(name, total=seen + missing, tasks=self.tasks, **counts)
        result.error_categories = dict(self.errors)
        result.unscored_by_kind = dict(self.unscored) | ({"not-run": missing} if missing else {})
        result.usage = dict(self.usage)
        if "total_skill_invocations" in result.usage:
            result.usage["avg_skill_invocations"] = result.usage["total_skill_invocations"] / max(seen, 1)
        passes, rewards = [t.passes for t in self.tasks.values()], [t.rewards for t in self.tasks.values()]
        if alone and result.scored:
            result.mean_reward = sum(map(sum, rewards)) / sum(map(len, rewards))
            result.score_interval = effective_interval(passes)
            result.score_error, result.reward_error = clustered_error(passes), clustered_error(rewards)
        self._split(result)
        self._choices(result)
        return result

    def _choices(self, result: EvaluationResult) -> None:
        """Score the rollouts under each choice about contested ones."""
        result.contested = self.contested["counted", "all"]
        for choice in CHOICES if result.contested else ():
            passed, scored = (
                have - self.contested["counted", what] + self.contested[choice, what]
                for have, what in ((result.passed, "passed"), (result.scored, "scored"))
            )
            result.contested_scores[choice] = passed / scored if scored else None

    def _split(self, result: EvaluationResult) -> None:
        """Count image fidelity and isolation, and where they are mixed, score each kind for itself."""
        parts: dict[str, list[int]] = {}
        for (fidelity, isolation, outcome), n in sorted(self.strata.items()):
            result.fidelity[fidelity] = result.fidelity.get(fidelity, 0) + n
            result.isolation[isolation] = result.isolation.get(isolation, 0) + n
            part = parts.setdefault(f"{fidelity} image, {isolation} verifier", [0, 0])
            part[0] += n if outcome == "passed" else 0
            part[1] += n
        if len(parts) > 1:
            result.strata = {k: {"passed": p, "scored": n, "score_ratio": p / n} for k, (p, n) in parts.items()}


def _failure(result: Mapping[str, Any], outcome: str, arm: str) -> dict[str, Any]:
    rewards = ", ".join(f"{name} {value:g}" for name, value in (result.get("rewards") or {}).items())
    info = result.get("error_info") or result.get("verifier_error_info") or {}
    return {
        "task": result["task_name"],
        "rollout": result["rollout_name"],
        "outcome": outcome,
        "reason": result.get("error") or result.get("verifier_error") or rewards or "no reward",
        "arm": arm,
        "remedy": info.get("remedy") or "",
    }
