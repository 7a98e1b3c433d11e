"""`bench eval metrics`: one aggregate over a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.results.contested import Choice

__all__ = ["metrics"]


@click.command("metrics")
@click.argument("jobs_dir", type=click.Path(exists=True, file_okay=False), default="jobs")
@click.option("--benchmark", default="", help="A name for the heading.")
@click.option("--agent", default="", help="Only this agent.")
@click.option("--model", default="", help="Only this model.")
@click.option("--arm", default="", help="Only this arm of the jobs' matrix.")
@click.option(
    "--contested",
    type=click.Choice(["clean", "as-left", "unscored"]),
    help="Which score of contested rollouts counts; without it as the results say.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Also an interval from N resamples of the tasks.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@click.pass_obj
def metrics(
    ui: Ui,
    jobs_dir: str,
    benchmark: str,
    agent: str,
    model: str,
    arm: str,
    contested: Choice | None,
    bootstrap: int,
    seed: int,
) -> None:
    """Aggregate every finished rollout below a folder.

    Read from the rollouts' own files; `docs/statistics.md` says how each number is made.
    """
    from benchflow_core.cli.eval.scores import percent, score_report
    from benchflow_core.evaluation.metrics import collect_metrics

    found = collect_metrics(
        jobs_dir, benchmark, agent, model, arm=arm, contested=contested, bootstrap=bootstrap, seed=seed
    )

    def text() -> None:
        ui.out(f"{benchmark or jobs_dir}:")
        for line in score_report(found.result):
            ui.out(line)
        for name, part in (found.bootstrap.get("bootstrap") or {}).items():
            if name == "score_interval" and part:
                ui.out(
                    f"  bootstrap interval {percent(part[0])} to {percent(part[1])} ({bootstrap} samples, seed {seed})"
                )

    ui.emit(found.summary(), text)
