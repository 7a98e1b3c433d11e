"""`bench eval metrics`: one aggregate over a folder."""

from __future__ import annotations

import click

from benchflow_core.cli.ui import Ui

__all__ = ["metrics"]


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
