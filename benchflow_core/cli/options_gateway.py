"""Options of how models are reached, capped, recorded and replayed."""

from __future__ import annotations

from pathlib import Path

import click

from benchflow_core.cli.completion import plugin_name
from benchflow_core.cli.options import options

__all__ = ["gateway_options"]

gateway_options = options(
    click.option(
        "--gateway",
        metavar="NAME",
        shell_complete=plugin_name("gateway"),
        help="What carries model traffic; without it the best-ranked that can.",
    ),
    click.option(
        "--gateway-option",
        "gateway_options",
        multiple=True,
        metavar="K=V",
        help="An option of the gateway; repeatable.",
    ),
    click.option(
        "--helper-models",
        type=click.Choice(("same", "own", "refuse")),
        help="Who answers when an agent asks another model on its own, for a title or a sub-agent: the rollout's model "
        "(same, the default), the other model itself (own), or nobody.",
    ),
    click.option(
        "--max-rollout-tokens", type=click.IntRange(1), metavar="N", help="Tokens that each agent of a rollout may use."
    ),
    click.option(
        "--max-rollout-cost",
        type=click.FloatRange(0, min_open=True),
        metavar="USD",
        help="Money that each agent of a rollout may spend; needs the model's prices.",
    ),
    click.option("--record", is_flag=True, help="Keep every model exchange as it crossed the wire, for --replay."),
    click.option(
        "--replay",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="DIR",
        help="Answer from what a job or rollout recorded; the model is asked only where it ends.",
    ),
)
