"""What resume, retry and extend share: opening a job that was begun earlier, and going on with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.options import options
from benchflow_core.cli.options_scheduling import budget_options, fail_under_option
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import ConfigurationError

if TYPE_CHECKING:
    from benchflow_core.evaluation.reopen import Again

__all__ = ["again_options", "go_on"]

again_options = options(
    click.argument("job", type=click.Path(exists=True, file_okay=False)),
    click.option("--allow-drift", is_flag=True, help="Go on although something changed; recorded in the results."),
    click.option("-c", "--concurrency", type=click.IntRange(1), help="Rollouts at a time, instead of the job's own."),
    click.option("--executor", metavar="NAME", help="Run elsewhere than before; none: in the process of the job."),
    budget_options,
    fail_under_option,
    click.option("--detach", is_flag=True, help="Run in the background; bench eval attach shows it."),
)


def go_on(ui: Ui, given: dict[str, Any], *, again: Again = "nothing", trials: int | None = None) -> None:
    """Exit codes as those of create."""
    from benchflow_core.cli.running import run_job
    from benchflow_core.evaluation.job import Evaluation
    from benchflow_core.evaluation.jobfile import JobRecord

    job_dir = Path(given.pop("job")).resolve()
    record = JobRecord.read(job_dir)
    if given.pop("detach"):
        detach(ui, job_dir)
        return
    if trials is not None and trials < record.config["trials"]:
        raise ConfigurationError(
            f"job {record.job_name} already has {record.config['trials']} trials per task.",
            remedy="A job cannot lose trials; name a larger number.",
        )
    if Path(record.cwd).is_dir():
        os.chdir(record.cwd)  # relative paths among its settings mean what they meant
    allow_drift, fail_under = given.pop("allow_drift"), given.pop("fail_under")
    elsewhere = _executor(given.pop("executor"), record.config.get("executor"))
    changes = {name: value for name, value in {**given, "trials": trials}.items() if value is not None} | elsewhere
    _, result = run_job(
        ui,
        lambda listener: Evaluation.reopen(
            job_dir, again=again, changes=changes, allow_drift=allow_drift, listener=listener, warn=ui.warn
        ),
    )
    short = result.unscored if record.config["verify"] else sum(result.error_categories.values())
    if short or (fail_under is not None and result.lowest_score < fail_under):
        raise SystemExit(1)


def _executor(named: str | None, before: str | None) -> dict[str, Any]:
    """Another executor has other options: those of the job do not go with it."""
    if named is None or named == before:
        return {}
    return {"executor": None if named == "none" else named, "executor_options": {}}


def detach(ui: Ui, job_dir: Path) -> None:
    """This very command in the background, without `--detach`."""
    import sys
    import time

    from benchflow_core.evaluation.detach import start_detached

    argv = [word for word in sys.argv[1:] if word != "--detach"]
    pid = start_detached(argv, job_dir, newer_than=time.time())
    said = {"job_dir": str(job_dir), "pid": pid}

    def text() -> None:
        ui.out(f"Job {job_dir} runs in the background as process {pid}.")
        ui.out(f"  Watch: bench eval attach {job_dir}    Stop: bench eval stop {job_dir}")

    ui.emit(said, text)
