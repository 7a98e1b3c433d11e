"""What observers get: one frozen object per thing that happened in a job's life."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchflow_core.contracts.common import CheckFn, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.exporters import JobResults, RolloutRecord
    from benchflow_core.contracts.panels import Panel

__all__ = [
    "Event",
    "JobFinished",
    "JobStarted",
    "LiveRollout",
    "ObserverSpec",
    "PhaseFinished",
    "PhaseStarted",
    "RolloutFinished",
    "RolloutStarted",
    "TurnFinished",
    "TurnStarted",
]


class LiveRollout(Protocol):
    """A running rollout, to look at."""

    @property
    def name(self) -> str: ...

    @property
    def dir(self) -> Path: ...

    @property
    def phase(self) -> str: ...

    def events(self) -> Sequence[Mapping[str, Any]]:
        """The event log so far, read from disk."""

    def cancel(self, reason: str) -> None:
        """Ask it to stop; it is torn down as on Ctrl-C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of every event."""

    time: float
    """Unix time, UTC."""
    job: str
    job_dir: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(Event):
    """The plan is fixed; nothing has started."""

    planned: int
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinished(Event):
    """`summary.json` is written."""

    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStarted(Event):
    """One attempt begins."""

    rollout: LiveRollout
    task: str
    agent: str
    model: str | None
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted(Event):
    """`setup`, `start`, `install`, `execute`, `verify`, `cleanup`."""

    rollout: LiveRollout
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFinished(Event):
    """A phase ended, well or not."""

    rollout: LiveRollout
    phase: str
    seconds: float
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    """A prompt is about to be sent."""

    rollout: LiveRollout
    scene: str
    role: str
    turn: int
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished(Event):
    """A turn ended."""

    rollout: LiveRollout
    scene: str
    role: str
    turn: int
    stop_reason: str
    seconds: float
    n_tool_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFinished(Event):
    """`result.json` is written."""

    rollout: LiveRollout
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObserverSpec:
    """An observer. Called off the event loop, one event at a time and in order; what it raises is one warning.

    Example::

        @hookimpl
        def benchflow_observer() -> ObserverSpec:
            return ObserverSpec(summary="Slack messages", on_event=post_to_slack, events=(JobFinished,))
    """

    summary: str
    on_event: Callable[[Event], None]
    events: tuple[type[Event], ...] = ()
    """Only these; empty for all."""
    enabled: Callable[[], bool] = lambda: True
    """Asked once per job."""
    flush: Callable[[], None] | None = None
    """Called at the end of the job, with 10 s to spend."""
    panel: Callable[[RolloutRecord], Panel | None] | None = None
    """What it adds to the page of a rollout, from what is on disk."""
    job_panel: Callable[[JobResults], Panel | None] | None = None
    """What it adds to the page of a job."""
    check: CheckFn = no_checks
    meta: Mapping[str, Any] = field(default_factory=dict)
