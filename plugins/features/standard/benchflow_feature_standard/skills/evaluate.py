"""`bench skills eval`: the same tasks with a skill and without it, in one job, paired by task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from benchflow_core.contracts import CommandContext
from benchflow_core.errors import UsageError
from benchflow_feature_standard.skills.folders import CASES
from benchflow_feature_standard.skills.gepa import export_gepa
from benchflow_feature_standard.skills.lift import MODES, Lift, measure_lifts

__all__ = ["older_skill_eval", "skill_eval"]

_TAKEN = ("skills_dir", "skill_mode", "matrix_file", "dry_run", "detach", "fail_under")
"""Options of jobs that this command settles itself."""
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
    ui: CommandContext = ctx.obj
    given = {name: value for name, value in ui.core().job_settings(ctx).items() if name not in _OWN}
    baseline = not ctx.params["no_baseline"]
    given["skill_mode"] = list(MODES) if baseline else [MODES[1]]
    cases = _take_cases(ctx, given, skills)
    if skills:
        given["skills_dir"] = skills
    job = ui.core().job(ctx, given, _pairs(given))
    if (matrix := job.settings["matrix"]) and matrix.scenes:
        raise UsageError("skills eval compares an agent with itself, and there is a matrix of scenes.")

    def lifts(folder: Path) -> dict[str, Lift]:
        return measure_lifts(ui.results(), folder, metric="reward" if cases else "pass") if baseline else {}

    folder, complete = job.run(lambda folder: _document(lifts(folder)))
    if not ui.json:
        for who, lift in lifts(folder).items():
            _show(ui, who, lift)
    if ctx.params["export_gepa"]:
        traces = export_gepa(ui.results(), folder, Path(skills).expanduser() if skills else None)
        ui.note(f"traces for GEPA are in {traces}")
    if not complete:
        ctx.exit(1)


def _take_cases(ctx: click.Context, given: dict[str, Any], skills: str | None) -> bool:
    """Take the skill's own cases as tasks where none is named."""
    named = any(given.get(name) for name in ("tasks_dir", "source", "dataset"))
    if ctx.params["config_file"] or named or skills is None:
        return False
    folder = Path(skills).expanduser().resolve()
    if not (folder / CASES).is_file():
        raise UsageError(f"no task was named, and {skills} has no {CASES}.", remedy="Add -t PATH, or write some cases.")
    if not (folder / "SKILL.md").is_file():
        raise UsageError(f"{skills} has {CASES}, but no SKILL.md: it is no skill.")
    given["source"] = {"repo": f"skill-evals:{folder}"}
    return True


def _pairs(given: dict[str, Any]) -> list[str]:
    """Take as many agents as models for pairs: an agent is not run with another one's model."""
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


def _show(ui: CommandContext, who: str, lift: Lift) -> None:
    one = lift.comparison
    ui.out()
    if who:
        ui.out(who)
    rows = [[t["task"], f"{t['without']:g}", f"{t['with']:g}", str(t["invocations"])] for t in lift.tasks]
    ui.table(["TASK", "WITHOUT", "WITH", "SKILL CALLS"], rows)
    ui.out()
    low, high = one["interval"]
    found = f"{one['difference'] * 100:+.1f} points, 95 % interval {low * 100:+.1f} to {high * 100:+.1f}"
    ui.out(f"Lift: {found}, p = {one['p_value']:.2g}, {one['tasks']} tasks paired")
    ui.out(f"  with skills: a skill was used in {lift.used} of {lift.runs} rollouts")
    if lift.runs and not lift.used:
        ui.out("  note: no rollout used a skill, so a difference has another cause.")
    ui.out(f"  {one['verdict']}")


def _run_older(ctx: click.Context, skills: str) -> None:
    ctx.obj.note(
        "eval --skills-dir is bench skills eval: with the skills and without; --skill-mode with-skill is one arm."
    )
    _run(ctx, skills)


class _JobCommand(click.Command):
    """A command with the options of jobs behind its own."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        mine = [param for param in own if param.name in _OWN]
        jobs = ctx.obj.core().job_options() if ctx.obj else []
        taken = {*_TAKEN, *(spelling for param in own for spelling in param.opts)}
        more = [param for param in jobs if taken.isdisjoint([param.name, *param.opts])]
        return [*mine, *more, *(param for param in own if param not in mine)]


_FOLDER = click.Path(exists=True, file_okay=False)
_PARAMS = [
    click.Option(["--no-baseline"], is_flag=True, help="Only with the skills: no lift, half the cost."),
    click.Option(["--export-gepa"], is_flag=True, help="Write SKILL.md and a trace per rollout to JOB/gepa."),
]
skill_eval = _JobCommand(
    "eval",
    params=[click.Argument(["skills"], required=False, type=_FOLDER), *_PARAMS],
    callback=click.pass_context(lambda ctx, **given: _run(ctx, given["skills"])),
    help=_HELP,
    short_help="Run tasks with a skill and without it, and compare.",
)
older_skill_eval = _JobCommand(
    "eval",
    params=[click.Option(["--skills-dir", "skills"], required=True, type=_FOLDER), *_PARAMS],
    callback=click.pass_context(lambda ctx, **given: _run_older(ctx, given["skills"])),
    help=_HELP,
)
