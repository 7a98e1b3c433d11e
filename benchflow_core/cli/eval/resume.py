"""`bench eval resume`, `retry` and `extend`: going on with a job that was begun earlier."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.completion import plugin_name
from benchflow_core.cli.running import detach, detach_option, exit_short, fail_under_option, run_job
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import ConfigurationError, UsageError
from benchflow_core.settings.models import JobSettings
from benchflow_core.settings.options import given_settings, setting_options

if TYPE_CHECKING:
    from benchflow_core.evaluation.reopen import Again

__all__ = ["extend", "resume", "retry"]

_CHANGED = ("concurrency", "executor", "max_cost", "max_tokens", "max_time")
"""Settings of the job that going on with it may change."""


def _begun(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the job, what may be different now, and the gates of `create`."""
    drift = click.option("--allow-drift", is_flag=True, help="Go on although something changed; results say so.")
    for option in (detach_option, fail_under_option, setting_options(JobSettings, plugin_name, _CHANGED), drift):
        command = option(command)
    return click.argument("job", type=click.Path(exists=True, file_okay=False))(command)


@click.command("resume")
@_begun
@click.pass_context
def resume(ctx: click.Context, /, **given: Any) -> None:
    """Run what a job has not finished: after Ctrl-C, a budget, a crash or kill -9.

    Finished rollouts are neither lost nor repeated. Refused when core, plugins, agents or tasks changed meanwhile.
    --executor none runs the rest in the process of the job.
    """
    _go_on(ctx)


@click.command("retry")
@_begun
@click.option("--errors", is_flag=True, help="Those that ended in an error, of whatever type, without a score.")
@click.pass_context
def retry(ctx: click.Context, /, errors: bool, **given: Any) -> None:
    """Run once more what a job could not score, and what it has not finished. Scored rollouts are never run again.

    The earlier attempts are kept below attempts/, with their cost.
    """
    if not errors:
        raise UsageError("say what to run again.", remedy="Add --errors: those that ended without a score.")
    _go_on(ctx, again="errors")


@click.command("extend")
@_begun
@click.option("--trials", type=click.IntRange(1), required=True, help="Trials per task, in all.")
@click.pass_context
def extend(ctx: click.Context, /, trials: int, **given: Any) -> None:
    """Bring a job up to this many trials per task, with the same settings, and finish what is not finished."""
    _go_on(ctx, trials=trials)


def _go_on(ctx: click.Context, *, again: Again = "nothing", trials: int | None = None) -> None:
    """Exit codes as those of create."""
    from benchflow_core.evaluation.job import Evaluation
    from benchflow_core.evaluation.jobfile import JobRecord

    ui: Ui = ctx.obj
    job_dir = Path(ctx.params["job"]).resolve()
    record = JobRecord.read(job_dir)
    if ctx.params["detach"]:
        detach(ui, job_dir, newer_than=time.time())
        return
    if trials is not None and trials < record.config["trials"]:
        raise ConfigurationError(
            f"job {record.job_name} already has {record.config['trials']} trials per task.",
            remedy="A job cannot lose trials; name a larger number.",
        )
    if Path(record.cwd).is_dir():
        os.chdir(record.cwd)  # relative paths among its settings mean what they meant
    changes = given_settings(JobSettings, ctx)
    if trials is not None:
        changes["trials"] = trials
    if "executor" in changes:
        changes |= _executor(changes.pop("executor"), record.config.get("executor"))
    allow_drift = ctx.params["allow_drift"]
    _, result = run_job(
        ui,
        lambda listener: Evaluation.reopen(
            job_dir, again=again, changes=changes, allow_drift=allow_drift, listener=listener, warn=ui.warn
        ),
    )
    exit_short(result, verify=record.config["verify"], fail_under=ctx.params["fail_under"])


def _executor(named: str, before: str | None) -> dict[str, Any]:
    """Another executor has other options: those of the job do not go with it."""
    return {} if named == before else {"executor": None if named == "none" else named, "executor_options": {}}
