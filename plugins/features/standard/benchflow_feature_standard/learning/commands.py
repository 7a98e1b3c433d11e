"""`bench learner`: what the rollouts of a `sequential-shared` job learned from each other."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from benchflow_core.contracts import CommandContext
from benchflow_feature_standard.learning.curve import draw_curve
from benchflow_feature_standard.learning.store import LearnerStore

__all__ = ["learner"]


def _job(command: Any) -> Any:
    option = click.option(
        "-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where jobs are by name."
    )
    return option(click.argument("job", metavar="JOB")(command))


def _store(ui: CommandContext, job: str, jobs_dir: str) -> LearnerStore:
    return LearnerStore.read(ui.results().find(job, Path(jobs_dir)))


@click.group("learner")
def learner() -> None:
    """See and steer what the rollouts of a sequential-shared job learned: generations of memory and skills."""


@learner.command("log")
@_job
@click.pass_obj
def log(ui: CommandContext, job: str, jobs_dir: str) -> None:
    """Every rollout in order: its reward, and what became of what it learned."""
    store = _store(ui, job, jobs_dir)
    value = {
        "head": store.head,
        "best": store.best,
        "generations": [asdict(g) for g in store.generations],
        "steps": [asdict(s) for s in store.steps],
    }

    def text() -> None:
        rows = [
            [
                str(step.number),
                step.task or "–",
                "–" if step.reward is None else f"{step.reward:g}",
                step.verdict,
                f"{step.began} → {step.generation}",
                ", ".join(f"{_SIGNS[how]}{path}" for path, how in step.changes.items()),
            ]
            for step in store.steps
        ]
        ui.table(["STEP", "TASK", "REWARD", "VERDICT", "GENERATION", "OFFERED"], rows)
        best = "nothing scored yet" if store.best is None else f"best {store.best:g}"
        ui.note(f"generation {store.head} of 0 to {len(store.generations) - 1} is in force, {best}")

    ui.emit(value, text)


_SIGNS = {"added": "+", "changed": "~", "removed": "-"}


@learner.command("diff")
@_job
@click.argument("base", type=int, required=False)
@click.argument("other", type=int, required=False)
@click.pass_obj
def diff(ui: CommandContext, job: str, jobs_dir: str, base: int | None, other: int | None) -> None:
    """What differs between two generations; without numbers, the one in force and the one before it."""
    store = _store(ui, job, jobs_dir)
    after = store.head if other is None else other
    before = store.generations[after].parent if base is None and 0 <= after < len(store.generations) else base
    first = before or 0
    text = store.diff(first, after)
    value = {"base": first, "other": after, "changes": store.changes(first, after), "diff": text}
    ui.emit(value, lambda: ui.out(text.rstrip("\n")) if text else ui.note(f"{first} and {after} are the same"))


@learner.command("restore")
@_job
@click.argument("generation", type=int)
@click.pass_obj
def restore(ui: CommandContext, job: str, jobs_dir: str, generation: int) -> None:
    """Put a generation in force: rollouts that follow (bench eval resume, extend) start from it."""
    root = _store(ui, job, jobs_dir).root
    with ui.results().locked(root):
        step = LearnerStore.read(root).restore(generation)
    value = {"generation": step.generation, "was": step.began, "best": step.best}
    ui.emit(value, lambda: ui.out(f"generation {step.generation} is in force; it was {step.began}"))


@learner.command("curve")
@_job
@click.option("--to", "target", type=click.Path(dir_okay=False), help="The file; without it learning_curve.svg there.")
@click.pass_obj
def curve(ui: CommandContext, job: str, jobs_dir: str, target: str | None) -> None:
    """Draw the learning curve as an SVG picture."""
    place = draw_curve(_store(ui, job, jobs_dir), Path(target) if target else None)
    ui.emit({"path": str(place)}, lambda: ui.out(str(place)))
