"""Metrics over finished jobs, read from the plain files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchflow_core.evaluation.summary import EvaluationResult, summarize
from benchflow_core.results.jobs import rollout_results

__all__ = ["BenchmarkMetrics", "collect_metrics"]


@dataclass(frozen=True)
class BenchmarkMetrics:
    """What a folder of results says."""

    benchmark: str
    result: EvaluationResult

    def summary(self) -> dict[str, Any]:
        return self.result.to_json({"benchmark": self.benchmark})


def collect_metrics(jobs_dir: str | Path, benchmark: str = "", agent: str = "", model: str = "") -> BenchmarkMetrics:
    """Every finished rollout below a folder, optionally of one agent or model."""
    root = Path(jobs_dir)
    rows = [
        r
        for r in rollout_results(root)
        if (not agent or r.get("agent") == agent) and (not model or r.get("model") == model)
    ]
    seconds = sum((r.get("timing") or {}).get("total", 0.0) for r in rows)
    return BenchmarkMetrics(benchmark, summarize(root.name, rows, len(rows), seconds, root))
