"""`bench eval create`: run a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.options import key_values, options, rollout_options
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

if TYPE_CHECKING:
    from benchflow_core.evaluation import EvaluationConfig, EvaluationResult

__all__ = ["create", "job_json"]


@click.command("create")
@rollout_options
@options(
    click.option(
        "-c", "--concurrency", type=click.IntRange(1), default=4, show_default=True, help="Rollouts at a time."
    ),
    click.option("--build-concurrency", type=click.IntRange(1), help="Image builds at a time."),
    click.option("--trials", type=click.IntRange(1), default=1, show_default=True, help="Attempts per task."),
    click.option(
        "--include", "include_tasks", multiple=True, metavar="GLOB", help="Only tasks of this name; repeatable."
    ),
    click.option(
        "--exclude", "exclude_tasks", multiple=True, metavar="GLOB", help="Not tasks of this name; repeatable."
    ),
    click.option(
        "--retries",
        "--max-retries",
        "max_retries",
        type=click.IntRange(0),
        default=2,
        show_default=True,
        help="Further attempts after an error that is worth one.",
    ),
    click.option(
        "--skip-unsupported", is_flag=True, help="Count tasks this sandbox cannot run as unscored instead of refusing."
    ),
    click.option("--fail-under", type=float, metavar="X", help="Exit 1 when the score is below X (0 to 1)."),
)
@click.pass_obj
def create(ui: Ui, /, **given: Any) -> None:
    """Run one task or a folder of them, and score the agent.

    \b
    bench eval create -t examples/tasks/hello-file -a oracle
    bench eval create -t examples/tasks -a scripted --agent-option script=solve.yaml

    Exit code 0: every rollout was scored, whatever the score. 1: coverage is short, or --fail-under was missed.
    """
    fail_under, verified = given.pop("fail_under"), given["verify"]
    result = run_job(ui, given)
    short = result.unscored if verified else sum(result.error_categories.values())
    if short or (fail_under is not None and result.score < fail_under):
        raise SystemExit(1)


def run_job(ui: Ui, given: dict[str, Any]) -> EvaluationResult:
    """Run a job as the options say, show it going, print how it ended."""
    from benchflow_core.cli.progress import Progress
    from benchflow_core.cli.running import run_async
    from benchflow_core.evaluation import Evaluation

    tasks_dir = given.pop("tasks_dir")
    if not tasks_dir:
        raise UsageError("no task was named.", remedy="Add -t PATH: a task or a folder of tasks.")
    jobs_dir, job_name = Path(given.pop("jobs_dir")), given.pop("job_name")
    progress = Progress(ui)
    job = Evaluation(tasks_dir, jobs_dir, _config(given), job_name, listener=progress.hear, warn=ui.warn)
    result: EvaluationResult = run_async(job.run())
    ui.emit(job_json(job, result), lambda: progress.finish(result, job.results))
    return result


def _config(given: dict[str, Any]) -> EvaluationConfig:
    """One option, one field: names are the same, only the shapes of a command line are translated."""
    from benchflow_core.evaluation import EvaluationConfig, RetryConfig

    for name in ("agent_env", "agent_options", "sandbox_options"):
        given[name] = key_values(given[name], f"--{name.removesuffix('s').replace('_', '-')}")
    idle = given.pop("agent_idle_timeout")
    try:
        given["agent_idle_timeout"] = None if idle in ("none", "0") else float(idle)
    except ValueError:
        raise UsageError(f"--agent-idle-timeout '{idle}': expected seconds, or none.") from None
    given["prompts"] = list(given["prompts"]) or None
    return EvaluationConfig(retry=RetryConfig(max_retries=given.pop("max_retries")), **given)


def job_json(job: Any, result: EvaluationResult) -> dict[str, Any]:
    from benchflow_core.results.files import read_json

    return {**read_json(job.job_dir / "summary.json"), "job_dir": str(job.job_dir), "rollouts": job.results}
