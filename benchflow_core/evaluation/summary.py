"""Honest aggregation: a score never stands without its coverage, its error, and what was mixed into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from benchflow_core.evaluation import statistics as st
from benchflow_core.quick import dataclass
from benchflow_core.results.contested import CHOICES, contested_scores, counted
from benchflow_core.rollout.result import outcome_of

__all__ = ["SUMMARY_VERSION", "EvaluationResult", "Tally", "arm_of", "summarize", "team_of"]

SUMMARY_VERSION = "1.0"
_SHOWN_FAILURES = 20


@dataclass
class Task:
    """What is kept of a task's rollouts: numbers only, so that a large job stays small in memory."""

    name: str
    passes: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


@dataclass
class EvaluationResult:
    """What a job, or any set of rollouts, says."""

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
    """`kind:code` of every error, those of scored rollouts included."""
    unscored_by_kind: dict[str, int] = field(default_factory=dict)
    """Why rollouts have no score, by type of error; `not-run` for those that left no result."""
    fidelity: dict[str, int] = field(default_factory=dict)
    isolation: dict[str, int] = field(default_factory=dict)
    contested: int = 0
    """Rollouts whose readings differ, unsettled by evidence or a person."""
    contested_scores: dict[str, float | None] = field(default_factory=dict)
    """The score under each choice about them."""
    strata: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Where image fidelity or isolation differ: the score of each kind for itself."""
    usage: dict[str, float] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    arms: dict[str, EvaluationResult] = field(default_factory=dict)
    """Where several agents, models or arms were run: each by itself, in the order of the job. Their scores are the
    job's scores; there is none over all of them."""
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
    def score(self) -> float | None:
        """Passed among the scored; read it together with `coverage` and `bounds`. None with several `arms`."""
        if self.arms:
            return None
        return self.passed / self.scored if self.scored else 0.0

    @property
    def score_excl_errors(self) -> float | None:
        """The older name of `score`, from when errors counted as failures in it."""
        return self.score

    @property
    def parts(self) -> dict[str, EvaluationResult]:
        """What has a score: each arm by its name, or the whole, without a name, where there are none."""
        return self.arms or {"": self}

    @property
    def lowest_score(self) -> float:
        """The score of the worst arm: what a threshold is compared with."""
        return min(part.score or 0.0 for part in self.parts.values())

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The score if every unscored rollout had failed, and if every one had passed. None with several `arms`."""
        if self.arms:
            return None
        if not self.total:
            return 0.0, 0.0
        return self.passed / self.total, (self.passed + self.unscored) / self.total

    @property
    def mean_reward(self) -> float | None:
        return self.reward_sum / self.rewarded if self.rewarded and not self.arms else None

    @property
    def score_error(self) -> float | None:
        """Standard error of `score`, clustered by task; none with fewer than two tasks."""
        return None if self.arms else st.clustered_error(t.passes for t in self.tasks.values())

    @property
    def score_interval(self) -> tuple[float, float] | None:
        """95 %, Wilson's, for as many rollouts as the trials of the same tasks are worth."""
        if self.arms or not self.scored:
            return None
        return st.effective_interval([t.passes for t in self.tasks.values()])

    @property
    def reward_error(self) -> float | None:
        return None if self.arms else st.clustered_error(t.rewards for t in self.tasks.values())

    @property
    def trials(self) -> dict[str, tuple[int, int]]:
        """(passed, scored) of every task with a score."""
        return {key: (round(sum(t.passes)), len(t.passes)) for key, t in self.tasks.items() if t.passes}

    def at_k(self) -> dict[str, dict[str, dict[str, float]]]:
        """pass@k and pass^k, each with the number of tasks that have k scored trials. Of one arm only: trials of
        different agents are not trials of the same thing."""
        trials = {} if self.arms else self.trials
        ks = st.ks_up_to(max((n for _, n in trials.values()), default=0))
        found: dict[str, dict[str, dict[str, float]]] = {"pass_at_k": {}, "pass_hat_k": {}}
        for name, estimate in (("pass_at_k", st.pass_at_k), ("pass_hat_k", st.pass_hat_k)):
            for k in ks:
                if (value := estimate(trials, k)) is not None:
                    found[name][str(k)] = {"value": value[0], "tasks": value[1]}
        return found

    def flaky(self) -> list[dict[str, Any]]:
        """Tasks that passed in some trials and failed in others, the most undecided first."""
        if self.arms:
            return [{**row, "arm": name} for name, arm in self.arms.items() for row in arm.flaky()]
        mixed = [(c, n, self.tasks[key].name) for key, (c, n) in self.trials.items() if 0 < c < n]
        mixed.sort(key=lambda row: (abs(row[0] / row[1] - 0.5), row[2]))
        return [{"task": name, "passed": c, "scored": n} for c, n, name in mixed]

    def _repr_html_(self) -> str:
        """For notebooks."""
        from benchflow_core.results.html import card, table

        low, high = self.score_interval or (None, None)
        facts = [
            ("score", _percent(self.score) if self.scored else "none yet"),
            ("95 % interval", f"{low:.1%} to {high:.1%}" if low is not None and high is not None else None),
            ("coverage", f"{self.scored}/{self.total} scored"),
            ("bounds", f"{self.bounds[0]:.1%} to {self.bounds[1]:.1%}" if self.unscored and self.bounds else None),
            ("outcomes", ", ".join(f"{n} {name}" for name, n in self._counts() if n)),
            ("mean reward", self.mean_reward),
            ("unscored", ", ".join(f"{kind} {n}" for kind, n in self.unscored_by_kind.items())),
            ("cost", f"${self.usage['total_cost_usd']:.2f}" if self.usage.get("total_cost_usd") else None),
            ("seconds", round(self.elapsed_sec, 1) or None),
            ("folder", self.job_dir),
        ]
        arms = [
            (name, _percent(a.score) if a.scored else "none yet", f"{a.scored}/{a.total}")
            for name, a in self.arms.items()
        ]
        failures = [
            (f["task"], f["arm"] if self.arms else None, f["outcome"], f["reason"])
            for f in self.failures[:_SHOWN_FAILURES]
        ]
        return card(
            f"Evaluation {self.job_name}",
            facts,
            table(["arm", "score", "scored"], arms),
            table(["task", "arm", "outcome", "why"], failures),
        )

    def _counts(self) -> list[tuple[str, int]]:
        return [(name, getattr(self, name)) for name in ("passed", "failed", "errored", "verifier_errored")]

    def to_json(self, more: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "schema_version": SUMMARY_VERSION,
            "job_name": self.job_name,
            **self.usage,
            **more,
            "total": self.total,
            "passed": self.passed,
            "failed": self.failed,
            "errored": self.errored,
            "verifier_errored": self.verifier_errored,
            "scored": self.scored,
            "unscored": self.unscored,
            "unscored_by_kind": self.unscored_by_kind,
            "coverage": self.coverage,
            "score": _percent(self.score) if self.scored else None,
            "score_ratio": self.score if self.scored else None,
            "score_bounds": self.bounds,
            "score_error": self.score_error,
            "score_interval": self.score_interval,
            "mean_reward": self.mean_reward,
            "mean_reward_error": self.reward_error,
            "tasks": len(self.tasks),
            **self.at_k(),
            "flaky_tasks": self.flaky(),
            "error_categories": self.error_categories,
            "image_fidelity": self.fidelity,
            "verifier_isolation": self.isolation,
            "contested": self.contested,
            "contested_scores": self.contested_scores,
            "strata": {} if self.arms else self.strata,
            **({"arms": {name: arm.to_json({}) for name, arm in self.arms.items()}} if self.arms else {}),
            "elapsed_sec": round(self.elapsed_sec, 3),
        }


class Tally:
    """Rollouts one by one; their results may be forgotten afterwards."""

    def __init__(self, job_name: str) -> None:
        self._name = job_name
        self._arms: dict[str, _Arm] = {}
        self._failures: list[dict[str, Any]] = []

    def add(self, result: Mapping[str, Any]) -> None:
        """`result.json`, or a row with the same keys."""
        name, outcome = arm_of(result), outcome_of(result)
        arm = self._arms.get(name)
        if arm is None:
            arm = self._arms[name] = _Arm()
        arm.add(result, outcome)
        if outcome != "passed":
            self._failures.append(_failure(result, outcome, name))

    def result(
        self,
        planned: int | None = None,
        elapsed: float = 0.0,
        job_dir: Path | None = None,
        arms: Mapping[str, int] | None = None,
    ) -> EvaluationResult:
        """`planned` counts rollouts that left no result, too; `arms` does so for each arm, in the order of the job."""
        wanted = arms or {}
        names = [*wanted, *sorted(self._arms.keys() - wanted.keys())]
        found = {name: self._arms.get(name) or _Arm() for name in names}
        whole = _Arm()
        for arm in found.values():
            whole.join(arm)
        result = whole.result(self._name, planned)
        result.elapsed_sec, result.job_dir, result.failures = elapsed, job_dir, self._failures
        if len(found) > 1:
            result.arms = {name: arm.result(name, wanted.get(name)) for name, arm in found.items()}
        return result


class _Arm:
    """The counts of rollouts that were run alike."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.unscored: Counter[str] = Counter()
        self.usage: Counter[str] = Counter()
        self.strata: Counter[tuple[str, str, str]] = Counter()
        self.contested: Counter[tuple[str, str]] = Counter()
        """By choice, how many of the contested ones would pass and be scored; `counted` is how they count here."""
        self.tasks: dict[str, Task] = {}

    def add(self, result: Mapping[str, Any], outcome: str) -> None:
        self.counts[outcome] += 1
        key = _task_key(result)
        task = self.tasks.get(key)
        if task is None:
            task = self.tasks[key] = Task(result["task_name"])
        reward = (result.get("rewards") or {}).get("reward")
        if reward is None:
            self.unscored[_why(result)] += 1
        else:
            task.rewards.append(float(reward))
            task.passes.append(float(outcome == "passed"))
            self.strata[str(result.get("image_fidelity")), str(result.get("verifier_isolation")), outcome] += 1
        self._add_contested(result, outcome)
        for info in (result.get("error_info"), result.get("verifier_error_info")):
            if info:
                self.errors[f"{info['kind']}:{info['code']}"] += 1
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
        """Sums, and how many rollouts they are known for: what nobody reported is not zero."""
        usage = self.usage
        for name, count in (
            ("total_skill_invocations", result.get("n_skill_invocations")),
            ("total_tool_calls", result.get("n_tool_calls")),
        ):
            if count is not None:
                usage[name] += count
        used = result.get("agent_result")
        if used:
            for name, value in (("total_tokens", used.get("total_tokens")), ("total_cost_usd", used.get("cost_usd"))):
                if value is not None:
                    usage[name] += value
                    usage[f"{name}_known"] += 1

    def join(self, other: _Arm) -> None:
        for name in ("counts", "errors", "unscored", "usage", "strata", "contested"):
            getattr(self, name).update(getattr(other, name))
        for key, task in other.tasks.items():
            own = self.tasks.setdefault(key, Task(task.name))
            own.passes += task.passes
            own.rewards += task.rewards

    def result(self, name: str, planned: int | None = None) -> EvaluationResult:
        seen = sum(self.counts.values())
        missing = max(0, (planned or 0) - seen)
        result = EvaluationResult(name, total=seen + missing, tasks=self.tasks)
        for outcome, count in self.counts.items():
            setattr(result, outcome, count)
        result.reward_sum = sum(sum(task.rewards) for task in self.tasks.values())
        result.rewarded = sum(len(task.rewards) for task in self.tasks.values())
        result.error_categories = dict(self.errors)
        result.unscored_by_kind = dict(self.unscored) | ({"not-run": missing} if missing else {})
        result.usage = dict(self.usage)
        if "total_skill_invocations" in result.usage:
            result.usage["avg_skill_invocations"] = result.usage["total_skill_invocations"] / max(seen, 1)
        self._split(result)
        self._choices(result)
        return result

    def _choices(self, result: EvaluationResult) -> None:
        """The score under each choice about contested rollouts."""
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


def summarize(
    job_name: str,
    results: Iterable[Mapping[str, Any]],
    planned: int | None,
    elapsed: float,
    job_dir: Path | None,
    arms: Mapping[str, int] | None = None,
) -> EvaluationResult:
    """From the `result.json` of each rollout that counts. `planned`, in all and by arm: what the job set out to run."""
    tally = Tally(job_name)
    for result in results:
        tally.add(result)
    return tally.result(planned, elapsed, job_dir, arms)


def arm_of(result: Mapping[str, Any]) -> str:
    """The arm as the job names it, else who ran: agents and models."""
    if result.get("arm"):
        return str(result["arm"])
    return " ".join(name for name in team_of(result) if name)


def team_of(result: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The agents and the models of all roles, each named once."""
    roles = (result.get("roles") or {}).values() or [result]
    agents, models = (dict.fromkeys(str(r[key]) for r in roles if r.get(key)) for key in ("agent", "model"))
    return ", ".join(agents) or None, ", ".join(models) or None


def _task_key(result: Mapping[str, Any]) -> str:
    """A task that was changed is another task."""
    return f"{result['task_name']} {result.get('task_digest') or ''}"


def _why(result: Mapping[str, Any]) -> str:
    info = result.get("error_info") or result.get("verifier_error_info")
    return str(info["kind"]) if info else "no-reward"


def _percent(score: float | None) -> str | None:
    return None if score is None else f"{score:.1%}"


def _failure(result: Mapping[str, Any], outcome: str, arm: str) -> dict[str, Any]:
    reason = result.get("error") or result.get("verifier_error") or _reward_text(result.get("rewards"))
    told = result.get("error_info") or result.get("verifier_error_info") or {}
    failure = {"task": result["task_name"], "rollout": result["rollout_name"], "outcome": outcome, "reason": reason}
    return {**failure, "arm": arm, "remedy": told.get("remedy") or ""}


def _reward_text(rewards: Mapping[str, float] | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in (rewards or {}).items()) or "no reward"
