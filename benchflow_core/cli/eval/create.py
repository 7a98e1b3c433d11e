"""`bench eval create`: run a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.completion import plugin_name
from benchflow_core.cli.running import detach, detach_option, exit_short, fail_under_option, run_job
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError
from benchflow_core.settings.models import job_keys
from benchflow_core.settings.options import given_settings, setting_options

if TYPE_CHECKING:
    from benchflow_core.evaluation.yaml import JobSpec

__all__ = ["create", "settings"]

_REPORTS = ("task_manifest_out", "run_config_out", "health_summary_out")
_FILE = click.Path(dir_okay=False, path_type=Path)
_EXISTING = click.Path(exists=True, dir_okay=False)


@click.command("create")
@click.option("--config", "--run-config", "config_file", type=_EXISTING, help="A job file; options win over it.")
@click.option(
    "--config-override",
    "config_overrides",
    multiple=True,
    metavar="A.B=VALUE",
    help="A setting of the job file, or a mapping of them as {…} or @FILE; repeatable.",
)
@setting_options(job_keys(), plugin_name)
@click.option("--source-env", metavar="ADDRESS", help="Tasks of an environment: PROVIDER/NAME or what a source serves.")
@click.option("--source-env-version", metavar="V", help="Its version.")
@click.option(
    "--matrix",
    "matrix_file",
    type=_EXISTING,
    metavar="FILE",
    help="A YAML file with the matrix: agents, models, skill_modes.",
)
@click.option(
    "--keep-on-failure", is_flag=True, help="Keep the files of what did not pass, and say how to look into them."
)
@detach_option
@click.option("--dry-run", is_flag=True, help="Show the plan and what is in its way; start nothing.")
@fail_under_option
@click.option("--task-manifest-out", type=_FILE, metavar="FILE", help="Write which tasks were chosen, as JSON.")
@click.option("--run-config-out", type=_FILE, metavar="FILE", help="Write the settings in force, for --config.")
@click.option("--health-summary-out", type=_FILE, metavar="FILE", help="Write what was measured and what was not.")
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
    overrides = [*given["config_overrides"], *_matrix(given["matrix_file"])]
    spec = read_job(given["config_file"], overrides=overrides, given=settings(ctx))
    if given["detach"] and not given["dry_run"]:
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
    from benchflow_core.evaluation import Evaluation
    from benchflow_core.evaluation.yaml import open_job

    job, result = run_job(ui, lambda listener: open_job(spec, Evaluation, ui.warn, listener=listener))
    if health is not None:
        from benchflow_core.results.files import write_json

        write_json(health, ui.results().health(job.job_dir))
    exit_short(result, verify=spec.config.verify, fail_under=fail_under)


def _dry_run(ui: Ui, spec: JobSpec) -> None:
    from benchflow_core.cli.plan import show_plan
    from benchflow_core.cli.running import run_async
    from benchflow_core.evaluation.dryrun import plan_report

    report = run_async(plan_report(spec))
    ui.emit(report, lambda: show_plan(ui, report))
    if report["problems"]:
        raise SystemExit(1)


def _detach(ui: Ui, spec: JobSpec) -> None:
    """Run in the background, under a name that is known here."""
    from benchflow_core.results.layout import job_name

    name = spec.job_name or job_name()
    detach(ui, (spec.jobs_dir / name).resolve(), () if spec.job_name else ("--job-name", name))


def settings(ctx: click.Context) -> dict[str, Any]:
    """What was typed, by the names and in the shapes of a job file."""
    given = given_settings(job_keys(), ctx)
    if ctx.params["keep_on_failure"] and given.get("keep_state", "none") == "none":
        given["keep_state"] = "failed"
    _take_environment(given, ctx.params["source_env"], ctx.params["source_env_version"])
    return given


def _take_environment(given: dict[str, Any], name: str | None, version: str | None) -> None:
    """`--source-env ADDRESS` is the source `env:ADDRESS`, served by whichever installed source claims it."""
    if name is None:
        if version is not None:
            raise UsageError("--source-env-version says nothing without --source-env.")
        return
    if "repo" in given.get("source", ()):
        raise UsageError("--source-env and --source-repo both say which tasks to run.", remedy="Give one of them.")
    from benchflow_core.task.sources import refuse_unserved

    refuse_unserved(f"env:{name}", f"the environment '{name}'")
    given["source"] = {**given.get("source", {}), "repo": f"env:{name}"} | ({"ref": version} if version else {})


def _matrix(path: str | None) -> list[str]:
    """A file that is the matrix, as an override of the job's."""
    if path is None:
        return []
    from benchflow_core.settings.config_file import ConfigFile

    data = ConfigFile(path).data
    return [json.dumps({"matrix": data.get("matrix", data)}, default=str)]
