"""What `bench view` shows of it."""

from __future__ import annotations

from statistics import fmean

from benchflow_command_results.tool_calls.calls import calls
from benchflow_core.contracts import JobResults, Panel, PanelBars, PanelTable, PanelText, RolloutRecord

__all__ = ["job_panel", "rollout_panel"]


def rollout_panel(record: RolloutRecord) -> Panel | None:
    kinds: dict[str, list[float]] = {}
    for call in calls(record):
        row = kinds.setdefault(call["kind"], [0, 0, 0.0])
        row[0] += 1
        row[1] += call["status"] == "failed"
        row[2] += call["seconds"] or 0.0
    if not kinds:
        return None
    slowest = sorted(kinds.items(), key=lambda kind: -kind[1][2])
    seconds = {name: row[2] for name, row in slowest if row[2]}
    table = PanelTable(["Kind", "Calls", "Failed", "Seconds"], [[name, *row] for name, row in slowest])
    return Panel("Tools", [table, *([PanelBars(seconds, unit="s")] if len(seconds) > 1 else [])])


def job_panel(job: JobResults) -> Panel | None:
    """From the index alone: a job of ten thousand rollouts costs no more than its table."""
    counts: dict[str, list[int]] = {}
    for row in job.rows:
        if row.get("n_tool_calls") is not None:
            counts.setdefault(str(row["outcome"]), []).append(int(row["n_tool_calls"]))
    if not any(any(numbers) for numbers in counts.values()):
        return None
    means = {outcome.replace("_", " "): fmean(numbers) for outcome, numbers in sorted(counts.items())}
    return Panel("Tool calls per rollout", [PanelBars(means), PanelText("The mean of each outcome.")])
