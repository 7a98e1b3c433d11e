"""Exporters: derive another file format from finished rollouts. They read what is on disk and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.common import CheckFn, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.panels import Panel

__all__ = ["ExporterSpec", "JobResults", "RolloutRecord"]


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """A finished rollout as read from disk."""

    dir: Path
    result: Mapping[str, Any]
    config: Mapping[str, Any]
    events: Callable[[], Iterable[Mapping[str, Any]]]
    """Opens the event log anew each time: streams, never a list of everything."""


@dataclass(frozen=True, slots=True)
class JobResults:
    """A folder of rollouts as it is on disk now."""

    path: Path
    name: str
    rows: Sequence[Mapping[str, Any]]
    """One per finished rollout that counts: fields of its `result.json`, and `outcome`, `rollout_dir` and `side`: its
    arm, or agent and model where the job has none."""
    unfinished: Sequence[str]
    """Rollouts that were begun and left no result."""
    summary: Mapping[str, Any]
    """What `summary.json` would say of these rollouts now."""
    finished: bool
    running: bool
    """A process works on it at this moment."""
    planned: Sequence[Mapping[str, Any]] = ()
    """Every rollout it set out to run, in its order: `rollout`, `task`, `trial`, `arm`; empty where it has no plan."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it was asked to do, as its `job.json` holds it."""


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
