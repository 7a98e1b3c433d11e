"""`bench skills eval`: the same tasks with a skill and without it, in one job, paired by task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.eval.create import create, settings
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

if TYPE_CHECKING:
    from benchflow_core.evaluation.lift import Lift

__all__ = ["skill_eval"]

_TAKEN = ("skills_dir", "skill_mode", "matrix_file", "dry_run", "detach", "fail_under")
"""What this command settles itself."""
_HELP = """Run tasks with skills and without them, and say what the skills are worth.

\b
bench skills eval skills/ -t tasks/ -a claude-agent-acp -m claude-haiku-4-5 --trials 3
bench skills eval -t tasks/ -a codex        the skills that each task brings itself

One job with two arms, interleaved. The lift is paired by task and has an interval; how often the agent really used a
skill is counted from its own events. Other options are those of bench eval create.
"""


def _run(ctx: click.Context, skills: str | None) -> None:
    from benchflow_core.cli.running import run_job
    from benchflow_core.evaluation import Evaluation
    from benchflow_core.evaluation.lift import MODES, measure_lift
    from benchflow_core.evaluation.yaml import open_job, read_job

    ui: Ui = ctx.obj
    given = settings(ctx)
    given.pop("skills", None)
    given["skill_mode"] = list(MODES)
    if skills:
        given["skills_dir"] = skills
    spec = read_job(ctx.params["config_file"], overrides=ctx.params["config_overrides"], given=given)
    matrix = spec.config.matrix
    if matrix and (matrix.agents or matrix.models or matrix.scenes):
        raise UsageError("skills eval compares one agent with itself.", remedy="Name one agent and one model.")
    jobs: list[Evaluation] = []

    def make(listener: Any) -> Evaluation:
        jobs.append(open_job(spec, Evaluation, ui.warn, listener=listener))
        return jobs[0]

    job, result = run_job(ui, make, lambda: {"lift": measure_lift(jobs[0].job_dir).to_json()})
    if not ui.json:
        _show(ui, measure_lift(job.job_dir))
    if result.unscored:
        raise SystemExit(1)


def _show(ui: Ui, lift: Lift) -> None:
    one = lift.comparison
    ui.out()
    rows = [[t["task"], f"{t['without']:g}", f"{t['with']:g}", str(t["invocations"])] for t in lift.tasks]
    ui.table(["TASK", "WITHOUT", "WITH", "SKILL CALLS"], rows)
    ui.out()
    interval = f", 95 % interval {one.interval[0] * 100:+.1f} to {one.interval[1] * 100:+.1f}" if one.interval else ""
    ui.out(f"Lift: {one.difference * 100:+.1f} points{interval}, p = {one.p_value:.2g}, {one.tasks} tasks paired")
    ui.out(f"  with skills: a skill was used in {lift.used} of {lift.runs} rollouts")
    if lift.runs and not lift.used:
        ui.out("  note: no rollout used a skill, so a difference has another cause.")
    ui.out(f"  {one.verdict}")


skill_eval = click.Command(
    "eval",
    params=[
        click.Argument(["skills"], required=False, type=click.Path(exists=True, file_okay=False)),
        *(param for param in create.params if param.name not in _TAKEN),
    ],
    callback=click.pass_context(lambda ctx, **given: _run(ctx, given["skills"])),
    help=_HELP,
)
