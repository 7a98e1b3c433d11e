"""Exporters that write beside every rollout, as observers of its end: what one does wrong stays its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchflow_core.contracts.events import ObserverSpec, RolloutFinished
from benchflow_core.evaluation.stored import results_reader
from benchflow_core.plugins import Loaded

__all__ = ["automatic_exports"]


def automatic_exports(exporters: Sequence[Loaded]) -> list[Loaded]:
    """Return an observer for each exporter that is automatic."""
    return [
        replace(one, spec=ObserverSpec(one.spec.summary, partial(_export, one), events=(RolloutFinished,)))
        for one in exporters
        if one.spec.automatic
    ]


def _export(exporter: Loaded, event: Any) -> None:
    results_reader().export(event.rollout.dir, exporter)
