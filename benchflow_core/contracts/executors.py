"""Executors: run a plan's items, here or on a cluster. An item is JSON, never a pickle of live objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchflow_core.contracts.common import Availability, CheckFn, no_checks

__all__ = ["ExecutorContext", "ExecutorSpec", "ItemResult", "PlanItem"]


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One rollout to run. Everything in it survives `json.dumps`."""

    id: str
    config: Mapping[str, Any]
    task_source: Mapping[str, Any]
    task_digest: str
    requirements: Sequence[str]
    """`dist==version` of core and plugins: a worker checks them before it starts."""


@dataclass(frozen=True, slots=True)
class ItemResult:
    """A finished item: where its artifacts are, or why there are none."""

    id: str
    rollout_dir: str | None
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ExecutorContext:
    """What an executor is run with."""

    job_dir: Path
    concurrency: int
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutorSpec:
    """An executor.

    Example::

        @hookimpl
        def benchflow_executor() -> ExecutorSpec:
            return ExecutorSpec(summary="Ray cluster", run=run_on_ray)
    """

    summary: str
    run: Callable[[Sequence[PlanItem], ExecutorContext], AsyncIterator[ItemResult]]
    """Yields each item as it finishes. Closing the iterator cancels what is left and cleans up."""
    available: Callable[[], Availability] = lambda: Availability(True)
    default: bool = False
    check: CheckFn = no_checks
