"""Exporters: derive another file format from finished rollouts. They read what is on disk and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.common import CheckFn, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.panels import Panel
    from benchflow_core.contracts.results import JobResults

__all__ = ["ExporterSpec", "RolloutRecord"]


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """A finished rollout as read from disk."""

    dir: Path
    result: Mapping[str, Any]
    config: Mapping[str, Any]
    events: Callable[[], Iterable[Mapping[str, Any]]]
    """Opens the event log anew each time: streams, never a list of everything."""


@dataclass(frozen=True, slots=True)
class ExporterSpec:
    """An export format.

    Example::

        @hookimpl
        def benchflow_exporter() -> ExporterSpec:
            return ExporterSpec(summary="ATIF trajectories", file_name="trajectory.json", export=to_atif)
    """

    summary: str
    file_name: str
    """What one export is called by default."""
    export: Callable[[RolloutRecord, Mapping[str, str]], bytes]
    """One rollout to one document; for line formats whole lines, or none where there is nothing to say."""
    lines: bool = False
    """The documents of a job are concatenated into one file."""
    automatic: bool = False
    """Written beside every rollout as it finishes, below `trainer/`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What `--option` knows, with the defaults; `export` gets all of them."""
    panel: Callable[[RolloutRecord], Panel | None] | None = None
    """What it adds to the page of a rollout."""
    job_panel: Callable[[JobResults], Panel | None] | None = None
    """What it adds to the page of a job."""
    check: CheckFn = no_checks
