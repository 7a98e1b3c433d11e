"""`bench eval`: run evaluations and look at them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.lazy import LazyGroup
from benchflow_core.cli.options import key_values, options, rollout_options
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

if TYPE_CHECKING:
    from benchflow_core.evaluation import EvaluationConfig, EvaluationResult

__all__ = ["create", "eval_group"]


@click.group("eval", cls=LazyGroup)
def eval_group() -> None:
    """Run evaluations and look at their results."""


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


eval_group.add_command(create)
eval_group.add_command(create, "run")


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
    ui.emit(_as_json(job, result), lambda: progress.finish(result, job.results))
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


def _as_json(job: Any, result: EvaluationResult) -> dict[str, Any]:
    from benchflow_core.results.files import read_json

    return {**read_json(job.job_dir / "summary.json"), "job_dir": str(job.job_dir), "rollouts": job.results}


@click.command("list")
@click.argument("jobs_dir", type=click.Path(), default="jobs")
@click.pass_obj
def list_jobs(ui: Ui, jobs_dir: str) -> None:
    """Finished jobs below a folder."""
    from benchflow_core.results.jobs import finished_jobs

    jobs = finished_jobs(Path(jobs_dir))

    def text() -> None:
        rows = [
            [
                j["job_name"],
                str(j.get("agent")),
                str(j.get("model") or ""),
                str(j.get("sandbox")),
                f"{j['passed']}/{j['scored']}",
                f"{j['scored']}/{j['total']}",
                j["score"],
            ]
            for j in jobs
        ]
        ui.table(["JOB", "AGENT", "MODEL", "SANDBOX", "PASSED", "COVERAGE", "SCORE"], rows)

    ui.emit(jobs, text)


eval_group.add_command(list_jobs)


@click.command("metrics")
@click.argument("jobs_dir", type=click.Path(exists=True, file_okay=False))
@click.option("--benchmark", default="", help="A name for the heading.")
@click.option("--agent", default="", help="Only this agent.")
@click.option("--model", default="", help="Only this model.")
@click.pass_obj
def metrics(ui: Ui, jobs_dir: str, benchmark: str, agent: str, model: str) -> None:
    """Aggregate every finished rollout below a folder."""
    from benchflow_core.cli.progress import score_line
    from benchflow_core.evaluation.metrics import collect_metrics

    found = collect_metrics(jobs_dir, benchmark, agent, model)

    def text() -> None:
        ui.out(f"{benchmark or jobs_dir}: {score_line(found.result)}")
        for name, count in sorted(found.result.error_categories.items()):
            ui.out(f"  {count} × {name}")

    ui.emit(found.summary(), text)


eval_group.add_command(metrics)


@click.command("reproduce")
@click.argument("rollout", type=click.Path(exists=True, file_okay=False))
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where results go.")
@click.option("--allow-drift", is_flag=True, help="Run although core, plugins or task differ; recorded in the result.")
@click.pass_obj
def reproduce(ui: Ui, rollout: str, jobs_dir: str, allow_drift: bool) -> None:
    """Repeat a rollout from its lock.json alone."""
    from benchflow_core.cli.progress import Progress
    from benchflow_core.cli.running import run_async
    from benchflow_core.evaluation.reproduce import reproduction

    progress = Progress(ui)
    job, drift = reproduction(
        Path(rollout), Path(jobs_dir), allow_drift=allow_drift, listener=progress.hear, warn=ui.warn
    )
    for line in drift:
        ui.warn(line)
    result: EvaluationResult = run_async(job.run())
    ui.emit({**_as_json(job, result), "drift": drift}, lambda: progress.finish(result, job.results))
    if result.unscored:
        raise SystemExit(1)


eval_group.add_command(reproduce)
