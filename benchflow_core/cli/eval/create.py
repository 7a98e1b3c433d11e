"""`bench eval create`: run a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.options import key_values, names, options, rollout_options, task_options, typed
from benchflow_core.cli.options_gateway import gateway_options
from benchflow_core.cli.options_scheduling import fail_under_option, scheduling_options, take_scheduling
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

if TYPE_CHECKING:
    from benchflow_core.evaluation.yaml import JobSpec

__all__ = ["create", "settings"]

_LISTS = ("agent", "model", "skill_mode", "include_tasks", "exclude_tasks", "allow_env", "services")
_TABLES = {
    "agent_env": "--agent-env",
    "agent_options": "--agent-option",
    "sandbox_options": "--sandbox-option",
    "gateway_options": "--gateway-option",
    "executor_options": "--executor-option",
}
_SKILL_MODES = ("no-skill", "with-skill", "self-gen")
_REPORTS = ("task_manifest_out", "run_config_out", "health_summary_out")
_NOT_SETTINGS = ("config_file", "config_overrides", "matrix_file", "fail_under", "dry_run", *_REPORTS)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("create")
@task_options
@rollout_options
@options(
    click.option(
        "-c",
        "--concurrency",
        type=click.IntRange(1),
        help="Rollouts at a time; without it as many as CPUs and memory fit.",
    ),
    click.option("--build-concurrency", type=click.IntRange(1), help="Image builds at a time."),
    click.option("--trials", type=click.IntRange(1), default=1, show_default=True, help="Rollouts per task and arm."),
    click.option(
        "--matrix",
        "matrix_file",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="A YAML file with the matrix: agents, models, skill_modes.",
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
)
@gateway_options
@scheduling_options
@options(
    click.option("--dry-run", is_flag=True, help="Show the plan and what is in its way; start nothing."),
    fail_under_option,
    click.option("--task-manifest-out", type=_FILE, metavar="FILE", help="Write which tasks were chosen, as JSON."),
    click.option("--run-config-out", type=_FILE, metavar="FILE", help="Write the settings in force, for --config."),
    click.option("--health-summary-out", type=_FILE, metavar="FILE", help="Write what was measured and what was not."),
)
@click.pass_context
def create(ctx: click.Context, /, **given: Any) -> None:
    """Run tasks with agents, and score them.

    \b
    bench eval create -t examples/tasks/hello-file -a oracle
    bench eval create -t examples/tasks -a scripted --agent-option script=solve.yaml
    bench eval create --config job.yaml -m other-model --dry-run
    bench eval create --source-repo owner/name --source-path tasks -a oracle,nop --trials 3

    Exit code 0: every rollout was scored, whatever the score. 1: coverage is short, or --fail-under was missed.
    """
    from benchflow_core.evaluation.yaml import read_job

    ui: Ui = ctx.obj
    detach = given["detach"]
    overrides = [*given["config_overrides"], *_matrix(given["matrix_file"])]
    spec = read_job(given["config_file"], overrides=overrides, given=settings(ctx))
    if detach and not given["dry_run"]:
        _detach(ui, spec)
        return
    _write_reports(spec, given)
    if given["dry_run"]:
        _dry_run(ui, spec)
    else:
        _run(ui, spec, given["fail_under"], given["health_summary_out"])


def _write_reports(spec: JobSpec, given: dict[str, Any]) -> None:
    """What can be told before anything starts."""
    if not any(given[name] for name in _REPORTS):
        return
    from benchflow_core.evaluation.reports import check_writable, write_run_config, write_task_manifest

    check_writable(given[name] for name in _REPORTS)
    if given["run_config_out"]:
        write_run_config(given["run_config_out"], spec)
    if given["task_manifest_out"]:
        write_task_manifest(given["task_manifest_out"], spec.tasks())


def _run(ui: Ui, spec: JobSpec, fail_under: float | None, health: Path | None) -> None:
    from benchflow_core.cli.running import run_job
    from benchflow_core.evaluation import Evaluation
    from benchflow_core.evaluation.yaml import open_job

    job, result = run_job(ui, lambda listener: open_job(spec, Evaluation, ui.warn, listener=listener))
    if health is not None:
        from benchflow_core.results.files import write_json

        write_json(health, ui.results().health(job.job_dir))
    short = result.unscored if spec.config.verify else sum(result.error_categories.values())
    if short or (fail_under is not None and result.lowest_score < fail_under):
        raise SystemExit(1)


def _dry_run(ui: Ui, spec: JobSpec) -> None:
    from benchflow_core.cli.plan import show_plan
    from benchflow_core.cli.running import run_async
    from benchflow_core.evaluation.dryrun import plan_report

    report = run_async(plan_report(spec))
    ui.emit(report, lambda: show_plan(ui, report))
    if report["problems"]:
        raise SystemExit(1)


def _detach(ui: Ui, spec: JobSpec) -> None:
    """This very command in the background, under a name that is known here."""
    import sys

    from benchflow_core.evaluation.detach import start_detached
    from benchflow_core.results.layout import job_name

    name = spec.job_name or job_name()
    argv = [word for word in sys.argv[1:] if word != "--detach"]
    if spec.job_name is None:
        argv += ["--job-name", name]
    job_dir = (spec.jobs_dir / name).resolve()
    pid = start_detached(argv, job_dir)

    def text() -> None:
        ui.out(f"Job {job_dir} runs in the background as process {pid}.")
        ui.out(f"  Watch: bench eval attach {job_dir}    Stop: bench eval stop {job_dir}")

    ui.emit({"job_dir": str(job_dir), "pid": pid}, text)


def settings(ctx: click.Context) -> dict[str, Any]:
    """What was typed, by the names and in the shapes of a job file."""
    given, everything = typed(ctx), dict(ctx.params)
    take_scheduling(everything)
    if "keep_on_failure" in given:
        given["keep_state"] = everything["keep_state"]
    if "limits" in given:
        given["limits"] = everything["limits"]
    for name in (*_NOT_SETTINGS, "keep_on_failure", "detach"):
        given.pop(name, None)
    for name in _LISTS:
        if name in given:
            given[name] = names(given[name])
    for name, option in _TABLES.items():
        if name in given:
            given[name] = key_values(given[name], option)
    if "prompts" in given:
        given["prompts"] = list(given["prompts"])
    if "agent_idle_timeout" in given:
        given["agent_idle_timeout"] = _seconds(given["agent_idle_timeout"])
    if given.get("sandbox_user") == "null":
        given["sandbox_user"] = "root"  # the older word
    for mode in given.get("skill_mode", ()):
        if mode not in _SKILL_MODES:
            raise UsageError(f"--skill-mode '{mode}': expected one of {', '.join(_SKILL_MODES)}.")
    _take_environment(given)
    source = {part: given.pop(f"source_{part}") for part in ("repo", "path", "ref") if f"source_{part}" in given}
    return {**given, **({"source": source} if source else {})}


def _take_environment(given: dict[str, Any]) -> None:
    """`--source-env ADDRESS` is the source `env:ADDRESS`, served by whichever installed source claims it."""
    name, version = given.pop("source_env", None), given.pop("source_env_version", None)
    if name is None:
        if version is not None:
            raise UsageError("--source-env-version says nothing without --source-env.")
        return
    if "source_repo" in given:
        raise UsageError("--source-env and --source-repo both say which tasks to run.", remedy="Give one of them.")
    from benchflow_core.task.sources import refuse_unserved

    given["source_repo"] = f"env:{name}"
    refuse_unserved(given["source_repo"], f"the environment '{name}'")
    if version is not None:
        given["source_ref"] = version


def _seconds(text: str) -> float | None:
    try:
        return None if text in ("none", "0") else float(text)
    except ValueError:
        raise UsageError(f"--agent-idle-timeout '{text}': expected seconds, or none.") from None


def _matrix(path: str | None) -> list[str]:
    """A file that is the matrix, as an override of the job's."""
    if path is None:
        return []
    import json

    from benchflow_core.configfile import ConfigFile

    data = ConfigFile(path).data
    return [json.dumps({"matrix": data.get("matrix", data)}, default=str)]
