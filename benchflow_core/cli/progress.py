"""What a job shows while it runs and when it is done: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from benchflow_core.cli.tracker import Tracker, amount, span
from benchflow_core.cli.ui import Ui, printable

if TYPE_CHECKING:
    from benchflow_core.cli.dashboard import Dashboard
    from benchflow_core.evaluation import EvaluationResult

__all__ = ["Progress"]

_SHOWN_FAILURES = 20
_LINE_EACH = 200
"""A job of more rollouts than this does not print one line for each."""
_HEARTBEAT = 30.0


class Progress:
    """Listens to a job. Nothing is shown with `--quiet`."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._tracker = Tracker()
        self._said: set[str] = set()
        self._view: Dashboard | None = None
        self._spoke = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the live view away. Safe to call again."""
        view, self._view = self._view, None
        if view is not None:
            view.close()

    def hear(self, kind: str, data: Mapping[str, Any]) -> None:
        """One entry of the job's journal, or a `live` report."""
        self._tracker.hear(kind, data)
        if self._ui.quiet:
            return
        if kind == "planned":
            self._planned(data)
        elif kind == "estimate":
            self._estimate(data)
        elif kind == "retry":
            why = f"attempt {data['attempt']} failed ({data['error']}); next in {data['wait']:.0f} s"
            self._line(f"{data['rollout']}{_arm(data)}: {why}")
        elif kind == "finished":
            self._finished(data)
        elif kind == "draining":
            again = " Ctrl-C again stops them." if data["reason"] == "interrupted" and data["running"] else ""
            self._line(f"{data['reason']}: nothing new starts, {data['running']} running are finished.{again}")
        elif kind == "live":
            self._heartbeat()

    def _planned(self, data: Mapping[str, Any]) -> None:
        chosen = " (chosen by rank; --sandbox names another)" if data["chosen"] else ""
        rollouts = f"{data['total']} rollout{'s' * (data['total'] != 1)}"
        before = f", {data['done']} of them finished before," if data.get("done") else ""
        where = f"on sandbox {data['sandbox']}{chosen}, verifier isolation {data['isolation']}"
        self._line(f"{rollouts}{before} {where}")
        self._notes(data)
        if _on_terminal():
            from benchflow_core.cli.dashboard import Dashboard

            self._view = self._view or Dashboard(self._tracker)

    def _estimate(self, data: Mapping[str, Any]) -> None:
        free = f"{amount(data['free_bytes'])}B free"
        if data["disk_bytes"] is None:
            self._line(f"no earlier job with this agent and model to judge disk and cost by; {free}")
            return
        cost = f", about {data['cost_usd']:.2f} USD" if data["cost_usd"] is not None else ", cost not known"
        self._line(
            f"expect about {amount(data['disk_bytes'])}B of results ({free}){cost}, judging by {data['judged_by']}"
        )
        if data["disk_bytes"] > data["free_bytes"]:
            self._ui.warn("the results may not fit on the disk.")

    def _finished(self, data: Mapping[str, Any]) -> None:
        self._notes(data)
        if self._tracker.total > _LINE_EACH:
            return
        if self._view is not None and (data.get("rewards") or {}).get("reward") == 1:
            return
        seconds = (data.get("timing") or {}).get("total")
        took = f" in {seconds:.1f} s" if seconds is not None else ""
        place = f"[{self._tracker.done}/{self._tracker.total}]"
        self._line(f"{place} {data['task_name']}{_arm(data)}: {_verdict(data)}{took}")

    def _notes(self, data: Mapping[str, Any]) -> None:
        for notice in data.get("notices") or ():
            if notice not in self._said:
                self._said.add(notice)
                self._line(f"note: {notice}")

    def _heartbeat(self) -> None:
        if self._view is None and time.monotonic() - self._spoke >= _HEARTBEAT:
            t = self._tracker
            parts = [f"{len(t.running)} running", t.counts(), t.spent(), t.left()]
            self._line(f"[{t.done}/{t.total}] after {span(t.seconds)}: " + "; ".join(p for p in parts if p))

    def _line(self, text: str) -> None:
        self._spoke = time.monotonic()
        if self._view is not None:
            self._view.line(text)
        else:
            self._ui.note(printable(text))

    def stopped(self, job_dir: Path) -> None:
        """After a stop that finished nothing more."""
        self.close()
        if (job_dir / "job.json").exists():
            self._ui.note(f"Every box is gone. Go on with: bench eval resume {job_dir}")

    def finish(self, result: EvaluationResult, rows: object = None) -> None:
        """The score with its coverage, the failures, and what to do next."""
        self.close()
        ui, t = self._ui, self._tracker
        for failure in result.failures[:_SHOWN_FAILURES]:
            where = f"({result.job_dir}/{failure['rollout']})"
            what = f"{failure['reason']} {failure['remedy']}".rstrip()
            ui.out(printable(f"✗ {failure['task']}{_arm(failure) if result.arms else ''}: {what}  {where}"))
        if len(result.failures) > _SHOWN_FAILURES:
            ui.out(f"  … and {len(result.failures) - _SHOWN_FAILURES} more: bench eval show {result.job_dir}")
        kept = [f["rollout"] for f in result.failures if _kept(result, f["rollout"])]
        if kept:
            where = f"{result.job_dir}/{kept[0]}"
            ui.out(f"  Files of {len(kept)} kept. Look into them: bench eval shell {where}")
            ui.out(f"  Remove them: rm -r {where} && bench cleanup")
        mark = "✓" if result.scored and result.passed == result.total else "•" if result.scored else "✗"
        first, *lines = _report(result)
        ui.out(printable(f"{mark} {first}"))
        for line in lines:
            ui.out(printable(line))
        if t.stopping:
            ui.out(f"  Stopped: {t.stopping}. Go on with: bench eval resume {result.job_dir}")
        ui.out(f"  Artifacts: {result.job_dir}")


def _report(result: EvaluationResult) -> Iterable[str]:
    """What the installed reader of results says of a score; without one, the score itself."""
    from benchflow_core.results.reader import find_reader

    if find_reader() is None:
        return [f"Score: {result.text}"] if not result.arms else [f"{n}: {a.text}" for n, a in result.arms.items()]
    from benchflow_core.evaluation.stored import results_reader

    return results_reader().report(result)


def _kept(result: EvaluationResult, rollout: str) -> bool:
    return result.job_dir is not None and (result.job_dir / rollout / "state.json").exists()


def _on_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def _arm(data: Mapping[str, Any]) -> str:
    return f" [{data['arm']}]" if data.get("arm") else ""


def _verdict(data: Mapping[str, Any]) -> str:
    rewards = data.get("rewards")
    if rewards is not None:
        text = ", ".join(f"{k} {v:g}" for k, v in rewards.items()) or "no number"
        return f"{text} ({data['error']})" if data.get("error") else text
    return f"unscored: {data.get('error') or data.get('verifier_error') or 'no reward'}"
