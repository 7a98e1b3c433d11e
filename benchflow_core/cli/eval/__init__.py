"""`bench eval`: run evaluations and look at them. One module per command, imported when it is typed."""

from __future__ import annotations

from typing import Final

import click

from benchflow_core.cli.lazy import Lazy, LazyGroup

__all__ = ["eval_group"]

_HERE: Final = "benchflow_core.cli.eval"

TABLE: Final[dict[str, Lazy]] = {
    "create": (f"{_HERE}.create:create", "Run one task or a folder of them, and score the agent."),
    "run": (f"{_HERE}.create:create", "The same as create."),
    "list": (f"{_HERE}.list:list_jobs", "Finished jobs below a folder."),
    "metrics": (f"{_HERE}.metrics:metrics", "Aggregate every finished rollout below a folder."),
    "reproduce": (f"{_HERE}.reproduce:reproduce", "Repeat a rollout from its lock.json alone."),
}


@click.group("eval", cls=LazyGroup, table=TABLE)
def eval_group() -> None:
    """Run evaluations and look at their results."""
