"""`bench skills eval`: the same tasks with a skill and without it, in one job, paired by task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.eval.create import create, settings
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

if TYPE_CHECKING:
    from benchflow_core.evaluation import Evaluation
    from benchflow_core.evaluation.lift import Lift

__all__ = ["older_skill_eval", "skill_eval"]

_TAKEN = ("skills_dir", "skill_mode", "matrix_file", "dry_run", "detach", "fail_under")
"""What this command settles itself."""
_OWN = ("skills", "no_baseline", "export_gepa")
_HELP = """Run tasks with skills and without them, and say what the skills are worth.

\b
bench skills eval my-skill/ -a codex        the cases in its evals/evals.json
bench skills eval skills/ -t tasks/ -a claude-agent-acp -m claude-haiku-4-5 --trials 3
bench skills eval -t tasks/ -a codex        the skills that each task brings itself

One job with two arms, interleaved. The lift is paired by task and has an interval; how often the agent really used a
skill is counted from its own events. Several agents, or agents and models in pairs, get a lift each. Other options are
those of bench eval create.
"""


def _run(ctx: click.Context, skills: str | None) -> None:
    from benchflow_core.cli.running import run_job
    from benchflow_core.evaluation import Evaluation
    from benchflow_core.evaluation.lift import MODES
    from benchflow_core.evaluation.yaml import open_job, read_job

    ui: Ui = ctx.obj
    given = {name: value for name, value in settings(ctx).items() if name not in _OWN}
    baseline = not ctx.params["no_baseline"]
    given["skill_mode"] = list(MODES) if baseline else [MODES[1]]
    cases = _take_cases(given, skills, ctx.params["config_file"])
    if skills:
        given["skills_dir"] = skills
    overrides = [*ctx.params["config_overrides"], *_pairs(given)]
    spec = read_job(ctx.params["config_file"], overrides=overrides, given=given)
    if spec.config.matrix and spec.config.matrix.scenes:
        raise UsageError("skills eval compares an agent with itself, and there is a matrix of scenes.")
    jobs: list[Evaluation] = []

    def make(listener: Any) -> Evaluation:
        jobs.append(open_job(spec, Evaluation, ui.warn, listener=listener))
        return jobs[0]

    def lifts() -> dict[str, Lift]:
        from benchflow_core.evaluation.lift import measure_lifts

        return measure_lifts(ui.results(), jobs[0].job_dir, metric="reward" if cases else "pass") if baseline else {}

    job, result = run_job(ui, make, lambda: _document(lifts()))
    if not ui.json:
        for who, lift in lifts().items():
            _show(ui, who, lift)
    if ctx.params["export_gepa"]:
        _export(ui, job, skills)
    if result.unscored:
        raise SystemExit(1)


def _take_cases(given: dict[str, Any], skills: str | None, config_file: str | None) -> bool:
    """Where no task is named, the skill's own cases are the tasks."""
    from benchflow_core.task.skillset import CASES
    from benchflow_core.task.sources import refuse_unserved

    if config_file or any(given.get(name) for name in ("tasks_dir", "source", "dataset")):
        return False
    if skills is None:
        return False
    folder = Path(skills).expanduser().resolve()
    if not (folder / CASES).is_file():
        raise UsageError(f"no task was named, and {skills} has no {CASES}.", remedy="Add -t PATH, or write some cases.")
    if not (folder / "SKILL.md").is_file():
        raise UsageError(f"{skills} has {CASES}, but no SKILL.md: it is no skill.")
    given["source"] = {"repo": f"skill-evals:{folder}"}
    refuse_unserved(given["source"]["repo"], f"{CASES} of a skill", "benchflow-adapter-skill-evals")
    return True


def _pairs(given: dict[str, Any]) -> list[str]:
    """As many agents as models are pairs: an agent is not run with another one's model."""
    agents, models = given.get("agent", ()), given.get("model", ())
    if len(agents) < 2 or len(agents) != len(models):
        return []
    del given["agent"], given["model"]
    axis = {f"{a}+{m}": {"agent": a, "model": m} for a, m in zip(agents, models, strict=True)}
    return [json.dumps({"matrix": {"models": axis}})]


def _document(lifts: dict[str, Lift]) -> dict[str, Any]:
    if not lifts:
        return {}
    if list(lifts) == [""]:
        return {"lift": lifts[""].to_json()}
    return {"lifts": {who: lift.to_json() for who, lift in lifts.items()}}


def _show(ui: Ui, who: str, lift: Lift) -> None:
    one = lift.comparison
    ui.out()
    if who:
        ui.out(who)
    rows = [[t["task"], f"{t['without']:g}", f"{t['with']:g}", str(t["invocations"])] for t in lift.tasks]
    ui.table(["TASK", "WITHOUT", "WITH", "SKILL CALLS"], rows)
    ui.out()
    low, high = one["interval"]
    interval = f"95 % interval {low * 100:+.1f} to {high * 100:+.1f}"
    found = f"{one['difference'] * 100:+.1f} points, {interval}, p = {one['p_value']:.2g}"
    ui.out(f"Lift: {found}, {one['tasks']} tasks paired")
    ui.out(f"  with skills: a skill was used in {lift.used} of {lift.runs} rollouts")
    if lift.runs and not lift.used:
        ui.out("  note: no rollout used a skill, so a difference has another cause.")
    ui.out(f"  {one['verdict']}")


def _export(ui: Ui, job: Evaluation, skills: str | None) -> None:
    from benchflow_core.evaluation.gepa import export_gepa

    folder = export_gepa(ui.results(), job.job_dir, Path(skills).expanduser() if skills else None)
    ui.note(f"traces for GEPA are in {folder}")


def _run_older(ctx: click.Context, skills: str) -> None:
    ui: Ui = ctx.obj
    ui.note("eval --skills-dir is bench skills eval: with the skills and without; --skill-mode with-skill is one arm.")
    _run(ctx, skills)


_FOLDER = click.Path(exists=True, file_okay=False)
_PARAMS = [
    click.Option(["--no-baseline"], is_flag=True, help="Only with the skills: no lift, half the cost."),
    click.Option(["--export-gepa"], is_flag=True, help="Write SKILL.md and a trace per rollout to JOB/gepa."),
    *(param for param in create.params if param.name not in _TAKEN),
]
skill_eval = click.Command(
    "eval",
    params=[click.Argument(["skills"], required=False, type=_FOLDER), *_PARAMS],
    callback=click.pass_context(lambda ctx, **given: _run(ctx, given["skills"])),
    help=_HELP,
)
older_skill_eval = click.Command(
    "eval",
    params=[click.Option(["--skills-dir", "skills"], required=True, type=_FOLDER), *_PARAMS],
    callback=click.pass_context(lambda ctx, **given: _run_older(ctx, given["skills"])),
    help=_HELP,
)
