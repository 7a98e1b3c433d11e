"""`bench eval compare`: which is better, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from benchflow_command_results.compare import Comparison, Side, load_sides
from benchflow_command_results.compare import compare as run
from benchflow_command_results.controlled import Difference
from benchflow_command_results.overview import contested_option
from benchflow_command_results.show import jobs_dir_option
from benchflow_core.contracts import CommandContext
from benchflow_core.contracts.outcomes import Choice
from benchflow_core.errors import UsageError

__all__ = ["compare"]

_FEW = 2
"""More sides than this are easier to read as a table."""
_SHOWN = 5
_LONGEST = 60


@click.command("compare")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--metric", default="pass", show_default=True, help="pass, or the name of a reward, such as reward.")
@click.option("--allow-different", "allow", multiple=True, metavar="FIELD", help="A field that may differ; repeatable.")
@contested_option
@click.option("--margin", type=click.FloatRange(0, 1), help="A difference that would not matter: 0.02 is two points.")
@click.option(
    "--samples", type=click.IntRange(100), default=2000, show_default=True, help="Draws for a reward's interval."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of these draws.")
@jobs_dir_option
@click.pass_obj
def compare(
    ui: CommandContext,
    jobs: tuple[str, ...],
    metric: str,
    allow: tuple[str, ...],
    contested: Choice | None,
    margin: float | None,
    samples: int,
    seed: int,
    jobs_dir: Path,
) -> None:
    """Compare jobs, or the arms of one job, with the first of them: paired by task.

    \b
    bench eval compare jobs/a jobs/b
    bench eval compare jobs/matrix                  every arm with the first
    bench eval compare jobs/matrix:opus jobs/other

    Tasks whose digest differs are not paired. Every recorded field that differs is listed. Where image fidelity or
    verifier isolation differ there is no verdict, unless --allow-different names them.
    """
    files = ui.core()
    sides = load_sides(files, jobs, jobs_dir, contested)
    found = run(files, sides, metric=metric, allow=allow, margin=margin, samples=samples, seed=seed)
    known = {d.field for one in found for d in one.different}
    if unknown := sorted(set(allow) - known):
        raise UsageError(
            f"--allow-different {unknown[0]}: no such field differs.",
            remedy=f"These do: {', '.join(sorted(known)) or 'none'}.",
        )
    data = {
        "sides": [{"name": side.name, **side.result.to_json({})} for side in sides],
        "comparisons": [one.to_json() for one in found],
        "draws": {"samples": samples, "seed": seed},
    }

    def text() -> None:
        if len(sides) > _FEW:
            ui.table(*_table(sides, found))
        else:
            for side in sides:
                ui.out(f"{side.name}: {side.result.text}")
        for one in found:
            ui.out()
            for line in _lines(one):
                ui.out(line)

    ui.emit(data, text)


def _table(sides: Sequence[Side], found: Sequence[Comparison]) -> tuple[list[str], list[list[str]]]:
    """One line per side; the first is the base."""
    metric, base = found[0].metric, found[0].base
    scale = 100.0 if metric == "pass" else 1.0
    rows = [[sides[0].name, *_own_cells(sides[0], found[0].base_mean * scale), "", "", ""]]
    for side, one in zip(sides[1:], found, strict=True):
        against = [f"{one.difference * scale:+.3g}", _range(one.interval, scale), f"{one.p_value:.3g}"]
        rows.append([side.name, *_own_cells(side, one.other_mean * scale), *against])
    shown = "PASS %" if metric == "pass" else metric.upper()
    return ["", shown, "COVERAGE", f"AGAINST {base}", "95 % INTERVAL", "P"], rows


def _own_cells(side: Side, mean: float) -> list[str]:
    return [f"{mean:.3g}", f"{side.result.scored}/{side.result.total}"]


def _lines(one: Comparison) -> Iterator[str]:
    scale, unit = (100.0, " points") if one.metric == "pass" else (1.0, "")
    yield f"{one.other} against {one.base}, {one.metric}, {one.tasks} tasks paired:"
    yield f"  {one.base_mean * scale:.3g} → {one.other_mean * scale:.3g}: {one.difference * scale:+.3g}{unit}"
    together = f", for {one.together} comparisons together" if one.together > 1 else ""
    yield f"  95 % interval {_range(one.interval, scale)}{unit}{together}"
    same = one.tasks - one.better - one.worse
    yield f"  {one.better} tasks better, {one.worse} worse, {same} the same, p = {one.p_value:.3g}"
    if one.detectable is not None:
        yield f"  a true difference of {one.detectable * scale:.3g}{unit} is shown in four of five cases"
    for entry in one.unpaired[:_SHOWN]:
        yield f"  not paired: {entry['task']}: {entry['reason']}"
    if len(one.unpaired) > _SHOWN:
        yield f"  not paired: {len(one.unpaired) - _SHOWN} more"
    if one.unpaired:
        yield f"  with all tasks the difference lies between {_range(one.bounds, scale)}{unit}"
    for difference in one.different:
        yield f"  {_difference(difference, one)}"
    yield f"{'✓' if one.outcome in ('better', 'worse', 'equivalent') else '•'} {one.verdict}"


def _difference(found: Difference, one: Comparison) -> str:
    how = "compared" if found.treatment else "allowed" if found.field in one.allowed else "differs too"
    return f"{how}: {found.field}: {_short(found.base)} → {_short(found.other)}"


def _short(values: list[str]) -> str:
    text = " | ".join(values) or "–"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _range(pair: tuple[float, float], scale: float) -> str:
    return f"{pair[0] * scale:+.3g} to {pair[1] * scale:+.3g}"
