"""`bench eval list`, the jobs of a folder, and `bench eval metrics`, one aggregate over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchflow_core.contracts import CommandContext
from benchflow_core.contracts.outcomes import CHOICES, Choice

__all__ = ["contested_option", "list_jobs", "metrics"]

_COUNTED = ("arms", "strata", "total_tool_calls", "total_skill_invocations", "avg_skill_invocations")
"""Of an older summary: counted anew, and absent where there is nothing to count."""

contested_option = click.option(
    "--contested",
    type=click.Choice(CHOICES),
    help="Which score of contested rollouts counts; without it as the results say.",
)


@click.command("list")
@click.argument("jobs_dir", type=click.Path(), default="jobs")
@click.pass_obj
def list_jobs(ui: CommandContext, jobs_dir: str) -> None:
    """Jobs below a folder, oldest first, as their rollouts say now."""
    from benchflow_command_results.jobs import job_result, job_team, stored_jobs

    files = ui.core()
    rows: list[tuple[str, dict[str, Any]]] = []
    for job in stored_jobs(files, Path(jobs_dir)):
        about = {key: value for key, value in job.about.items() if key not in _COUNTED}
        status = {"status": "finished" if job.finished else "unfinished", "started_at": job.began or None}
        data = job_result(files, job).to_json({**about, **job_team(job), **status})
        rows.append((job.began or job.name, {**data, "job_dir": str(job.path)}))
    jobs = [data for _, data in sorted(rows, key=lambda row: row[0])]

    def text() -> None:
        if table := [line for job in jobs for line in _lines(job)]:
            ui.table(["JOB", "AGENT", "MODEL", "SANDBOX", "PASSED", "COVERAGE", "SCORE", ""], table)
        else:
            ui.note(f"no job in {jobs_dir}")

    ui.emit(jobs, text)


def _lines(job: dict[str, Any]) -> Iterator[list[str]]:
    """A line for the job, and with several arms one for the score of each."""
    arms = job.get("arms") or {}
    status = "" if job["status"] == "finished" else job["status"]
    who = [str(job[key] or "") for key in ("agent", "model", "sandbox")]
    yield [job["job_name"], *who, *(["", _coverage(job), ""] if arms else _score(job)), status]
    for name, arm in arms.items():
        yield [f"  {name}", "", "", "", *_score(arm), ""]


def _score(one: dict[str, Any]) -> list[str]:
    return [f"{one['passed']}/{one['scored']}", _coverage(one), one["score"] if one["scored"] else "–"]


def _coverage(one: dict[str, Any]) -> str:
    return f"{one['scored']}/{one['total']}"


@click.command("metrics")
@click.argument("jobs_dir", type=click.Path(exists=True, file_okay=False, path_type=Path), default="jobs")
@click.option("--benchmark", default="", help="A name for the heading.")
@click.option("--agent", default="", help="Only this agent.")
@click.option("--model", default="", help="Only this model.")
@click.option("--arm", default="", help="Only this arm of the jobs' matrix.")
@contested_option
@click.option(
    "--bootstrap",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Also an interval from N resamples of the tasks.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@click.pass_obj
def metrics(
    ui: CommandContext,
    /,
    jobs_dir: Path,
    benchmark: str,
    contested: Choice | None,
    bootstrap: int,
    seed: int,
    **wanted: str,
) -> None:
    """Aggregate every finished rollout below a folder.

    Read from the rollouts' own files; `docs/statistics.md` says how each number is made.
    """
    from benchflow_command_results.metrics import collect_metrics
    from benchflow_command_results.report import score_report

    found = collect_metrics(
        ui.core(), jobs_dir, benchmark, wanted=wanted, contested=contested, bootstrap=bootstrap, seed=seed
    )
    drawn = (found.bootstrap.get("bootstrap") or {}).get("score_interval")

    def text() -> None:
        ui.out(f"{benchmark or jobs_dir}:")
        for line in score_report(found.result):
            ui.out(line)
        if drawn:
            ui.out(f"  bootstrap interval {drawn[0]:.1%} to {drawn[1]:.1%} ({bootstrap} samples, seed {seed})")

    ui.emit(found.summary(), text)
