"""`bench eval settle`: a person says which of two contested scores counts."""

from __future__ import annotations

from pathlib import Path

import click

from benchflow_core.cli.ui import Ui

__all__ = ["settle"]


@click.command("settle")
@click.argument("rollout", metavar="ROLLOUT")
@click.option("--as-left", "choice", flag_value="as-left", help="The score on the agent's files as they are.")
@click.option("--clean", "choice", flag_value="clean", help="The score with the changes undone that could steer.")
@click.option("--because", required=True, metavar="TEXT", help="Why; kept with the judgement.")
@click.option("--by", metavar="NAME", help="Who; without it the user of this machine.")
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where jobs are by name.")
@click.pass_obj
def settle(ui: Ui, rollout: str, choice: str | None, because: str, by: str | None, jobs_dir: str) -> None:
    """Settle a contested rollout.

    The judgement is kept in settlement.json and in the result, and summaries count with it.
    """
    from benchflow_core.cli.eval.scores import score_text
    from benchflow_core.errors import UsageError
    from benchflow_core.evaluation.settle import settle_rollout
    from benchflow_core.evaluation.verdicts import locked, refresh_summaries
    from benchflow_core.results.jobs import find_folder

    if choice is None:
        raise UsageError("which score is to count?", remedy="Add --as-left or --clean.")
    path = find_folder(rollout, Path(jobs_dir))
    if not (path / "result.json").is_file():
        raise UsageError(f"{path} is no rollout.", remedy="Name one: bench eval show JOB lists them.")
    with locked(path):
        result = settle_rollout(path, "clean" if choice == "clean" else "as-left", because, by)
        jobs = refresh_summaries(path)

    def text() -> None:
        ui.out(f"{path.name}: {choice} counts, because {because}")
        for job in jobs:
            ui.out(f"{job.job_dir}: {score_text(job)}")

    ui.emit({"rollout": str(path), "rewards": result["rewards"], "settlement": result["settlement"]}, text)
