"""What a job shows while it runs and when it is done. Plain lines: the same in a terminal and in a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.evaluation import EvaluationResult

__all__ = ["Progress", "score_line"]

_SHOWN_FAILURES = 5


class Progress:
    """Listens to a job."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._total = self._done = 0
        self._said: set[str] = set()

    def hear(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "planned":
            self._total = data["total"]
            chosen = " (chosen by rank; --sandbox names another)" if data["chosen"] else ""
            rollouts = f"{data['total']} rollout{'s' * (data['total'] != 1)}"
            self._ui.note(f"{rollouts} on sandbox {data['sandbox']}{chosen}, verifier isolation {data['isolation']}")
        elif kind == "retry":
            self._ui.note(
                f"{data['rollout']}: attempt {data['attempt']} failed ({data['error']}); next in {data['wait']:.0f} s"
            )
        elif kind == "finished":
            self._finished(data)

    def _finished(self, data: Mapping[str, Any]) -> None:
        self._done += 1
        for notice in data.get("notices") or ():
            if notice not in self._said:
                self._said.add(notice)
                self._ui.note(f"note: {notice}")
        seconds = (data.get("timing") or {}).get("total")
        took = f" in {seconds:.1f} s" if seconds is not None else ""
        self._ui.note(f"[{self._done}/{self._total}] {data['task_name']}: {_verdict(data)}{took}")

    def finish(self, result: EvaluationResult, rows: Sequence[Mapping[str, Any]]) -> None:
        """The score with its coverage, the failures, and what to do next."""
        ui = self._ui
        for failure in result.failures[:_SHOWN_FAILURES]:
            ui.out(f"✗ {failure['task']}: {failure['reason']}  ({result.job_dir}/{failure['rollout']})")
        if len(result.failures) > _SHOWN_FAILURES:
            ui.out(f"  … and {len(result.failures) - _SHOWN_FAILURES} more")
        mark = "✓" if result.scored and result.passed == result.total else "•" if result.scored else "✗"
        ui.out(f"{mark} Score: {score_line(result)}")
        for line in _mixed(result):
            ui.out(f"  {line}")
        ui.out(f"  Artifacts: {result.job_dir}")


def score_line(result: EvaluationResult) -> str:
    """A score, never without its coverage."""
    if not result.scored:
        return f"none: 0 of {result.total} rollouts could be scored"
    mean = "" if result.mean_reward is None else f", mean reward {result.mean_reward:.3g}"
    covered = f", coverage {result.scored}/{result.total}"
    if result.unscored:
        low, high = result.bounds
        covered += f" (all rollouts: between {low:.1%} and {high:.1%})"
    return f"{result.passed}/{result.scored} ({result.score:.1%}){mean}{covered}"


def _mixed(result: EvaluationResult) -> list[str]:
    """What must not go unnoticed in a mean."""
    lines = []
    if result.fidelity.get("substituted"):
        count = f"{result.fidelity['substituted']} of {result.scored}"
        lines.append(f"{count} ran on a substituted image: not comparable with exact ones.")
    if len(result.isolation) > 1:
        counts = ", ".join(f"{n} {name}" for name, n in sorted(result.isolation.items()))
        lines.append(f"verifier isolation differs between rollouts: {counts}.")
    return lines


def _verdict(data: Mapping[str, Any]) -> str:
    rewards = data.get("rewards")
    if rewards is not None:
        text = ", ".join(f"{k} {v:g}" for k, v in rewards.items()) or "no number"
        return f"{text} ({data['error']})" if data.get("error") else text
    return f"unscored: {data.get('error') or data.get('verifier_error') or 'no reward'}"
