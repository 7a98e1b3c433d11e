"""`bf.results(path)`: finished rollouts as rows, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_command_results.compare import Comparison, load_sides
from benchflow_command_results.compare import compare as compared
from benchflow_command_results.jobs import stored_jobs
from benchflow_command_results.metrics import BenchmarkMetrics
from benchflow_command_results.metrics import collect_metrics as collected

from benchflow.notebook import html_of, table
from benchflow_core.contracts.outcomes import Choice, outcome_of
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.stored import StoredFiles
from benchflow_core.results.models import COLUMN, fields_of_type, marked

if TYPE_CHECKING:
    import pandas

__all__ = ["BenchmarkMetrics", "Comparisons", "Results", "collect_metrics", "compare", "results"]

_SHOWN = 50
_PLAIN = [name for name in fields_of_type(str, int) if name in marked(COLUMN) and name != "job_name"]
"""Columns that are one text or one number."""


class Results:
    """Every rollout that counts below a folder: a job, a rollout, or a folder of jobs."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.rows: list[dict[str, Any]] = [
            _flat(row, job.name) for job in stored_jobs(StoredFiles(), self.path) for row in job.rows
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def metrics(self) -> BenchmarkMetrics:
        """Score, coverage, intervals: as `bench eval metrics`."""
        return collect_metrics(self.path)

    def _repr_html_(self) -> str:
        """For notebooks: the score, and the first rollouts."""
        columns = ["job", "task_name", "trial", "agent", "model", "outcome", "reward", "seconds_total", "cost_usd"]
        rows = [[row.get(name) for name in columns] for row in self.rows[:_SHOWN]]
        more = f"<p>{len(self.rows) - _SHOWN} more: use .to_dataframe()</p>" if len(self.rows) > _SHOWN else ""
        return html_of(self.metrics().result) + table(columns, rows) + more

    def to_dataframe(self) -> pandas.DataFrame:
        """One line per rollout. An unscored one has no reward: it is missing there, never zero."""
        return _pandas().DataFrame(self.rows)


def results(path: str | Path) -> Results:
    return Results(path)


class Comparisons(list[Comparison]):
    """Each of the others against the first; one below the other in a notebook."""

    def _repr_html_(self) -> str:
        return "".join(html_of(one) for one in self)

    def to_dataframe(self) -> pandas.DataFrame:
        """One line per comparison."""
        return _pandas().DataFrame([one.to_json() for one in self])


def compare(*jobs: str | Path, metric: str = "pass", margin: float | None = None) -> Comparisons:
    """Jobs (or the arms of one job) paired by task, as `bench eval compare` does it."""
    files = StoredFiles()
    sides = load_sides(files, [str(job) for job in jobs])
    return Comparisons(compared(files, sides, metric=metric, margin=margin))


def collect_metrics(
    jobs_dir: str | Path,
    benchmark: str = "",
    agent: str = "",
    model: str = "",
    *,
    arm: str = "",
    contested: Choice | None = None,
    bootstrap: int = 0,
    seed: int = 0,
) -> BenchmarkMetrics:
    """Every finished rollout below a folder, optionally of one agent, model or arm: as `bench eval metrics`."""
    wanted = {"agent": agent, "model": model, "arm": arm}
    more: dict[str, Any] = {"contested": contested, "bootstrap": bootstrap, "seed": seed}
    return collected(StoredFiles(), Path(jobs_dir), benchmark, wanted=wanted, **more)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ConfigurationError(
            "to_dataframe() needs pandas.", remedy="Run: pip install 'benchflow[dataframe]'; or use .rows."
        ) from None
    return pandas


def _flat(row: dict[str, Any], job: str) -> dict[str, Any]:
    used, timing = row.get("agent_result") or {}, row.get("timing") or {}
    rewards, info = row.get("rewards") or {}, row.get("error_info") or row.get("verifier_error_info") or {}
    return {
        "job": job,
        **{key: row.get(key) for key in _PLAIN},
        "outcome": outcome_of(row),
        "reward": rewards.get("reward"),
        **{f"reward_{name}": value for name, value in rewards.items() if name != "reward"},
        "error_kind": info.get("kind"),
        "error_code": info.get("code"),
        "flags": ",".join(row.get("flags") or ()),
        "input_tokens": used.get("n_input_tokens"),
        "output_tokens": used.get("n_output_tokens"),
        "total_tokens": used.get("total_tokens"),
        "cost_usd": used.get("cost_usd"),
        **{f"seconds_{name}": value for name, value in timing.items()},
        "rollout_dir": row["rollout_dir"],
    }
