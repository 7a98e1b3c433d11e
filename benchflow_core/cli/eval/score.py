"""`bench eval score`: verify again, without the agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.contracts.outcomes import Choice
    from benchflow_core.evaluation.verdicts import Rescored

__all__ = ["score"]


@click.command("score")
@click.argument("job", metavar="JOB|ROLLOUT")
@click.option(
    "--isolation",
    metavar="POLICY",
    help="Verifier isolation: fresh, shared or separate; without it as the job asked.",
)
@click.option(
    "--contested",
    type=click.Choice(["clean", "as-left", "unscored"]),
    help="Which score of contested rollouts counts; without it as the job asked.",
)
@click.option("--no-certificates", is_flag=True, help="Never run a task's reference solution to settle a score.")
@click.option("--allow-drift", is_flag=True, help="Verify although the task was changed; the verdict says so.")
@click.option("-c", "--concurrency", type=click.IntRange(1), default=4, show_default=True, help="Rollouts at a time.")
@click.option("--use", type=click.IntRange(1), metavar="N", help="Verify nothing; let the rollouts' verdict N count.")
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where jobs are by name.")
@click.pass_obj
def score(
    ui: Ui,
    job: str,
    isolation: str | None,
    contested: Choice | None,
    no_certificates: bool,
    allow_drift: bool,
    concurrency: int,
    use: int | None,
    jobs_dir: str,
) -> None:
    """Verify finished rollouts again from the state that --keep-state kept.

    The new verdict counts if it is one; every earlier one stays below verdicts/. Exit code 1: some rollout could not
    be verified again.
    """
    from benchflow_core.cli.running import run_async
    from benchflow_core.evaluation.score import score_again
    from benchflow_core.evaluation.verdicts import use_verdicts

    reader = ui.results()
    path = reader.find(job, Path(jobs_dir))
    with reader.locked(path):
        if use is not None:
            found = use_verdicts(reader.rollouts(path), use)
        else:
            work = score_again(
                path,
                isolation=isolation,
                contested=contested,
                certificates=not no_certificates,
                allow_drift=allow_drift,
                concurrency=concurrency,
                tell=lambda one: ui.note(_line(one)),
            )
            found = run_async(work)
        results = reader.refresh(path)
    data = {"rollouts": [one.to_json() for one in found], "jobs": [result.to_json({}) for result in results]}

    def text() -> None:
        for result in results:
            ui.out(f"{result.job_dir}: {result.text}")

    ui.emit(data, text)
    if any(one.problem for one in found):
        raise SystemExit(1)


def _line(one: Rescored) -> str:
    name = one.rollout.name
    if one.problem:
        return f"{name}: verdict {one.verdict} stands: {one.problem}"
    before, after = (_text(rewards) for rewards in (one.before, one.after))
    return f"{name}: {after}, as before" if before == after else f"{name}: {before} → {after}"


def _text(rewards: dict[str, float] | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in (rewards or {}).items()) or "unscored"
