"""Executors: where the rollouts of a job run. An item is JSON, never a pickle of live objects.

The job decides what starts when, tries again, counts budgets and writes the summary. An executor takes one item, has a
worker run it (`benchflow_executor_processes.worker_process` starts one), and tells how it ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from benchflow_core.contracts.common import Availability, CheckFn, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import Gateway

__all__ = [
    "Capacity",
    "Executor",
    "ExecutorContext",
    "ExecutorSpec",
    "Hear",
    "ItemResult",
    "JobGateways",
    "JobWorker",
    "OpenWorker",
    "PlanItem",
]

Hear = Callable[[Mapping[str, Any]], None]
"""Takes what a worker says about an item while it runs, as it came."""


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One attempt at one rollout. Everything in it survives `json.dumps`."""

    id: str
    """The rollout's name; no two that run together have the same."""
    config: Mapping[str, Any] = field(repr=False)
    """The settings of the rollout, and where it is written. Variables of the agent's are in it, secret ones too: never
    put an item into argv, a log or a file."""
    task_source: Mapping[str, Any]
    """`path`, and `provenance` where the task was fetched: a worker that does not see the path fetches it again."""
    task_digest: str
    requirements: Sequence[str]
    """`dist==version` of core and plugins: a worker checks them before it starts."""
    job: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the job tells every worker."""
    cpus: float = 1.0
    memory_mb: int = 1024
    """What the task declares, for placing it."""

    def to_json(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**value)


@dataclass(frozen=True, slots=True)
class ItemResult:
    """A finished item: where its artifacts are, or why there are none (`BenchflowError.to_json()`)."""

    id: str
    rollout_dir: str | None
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """What all workers have together, for boxes that use the CPUs and memory of their host."""

    cpus: float
    memory_mb: float


class Executor(Protocol):
    """An open executor. One per run of a job."""

    async def run(self, item: PlanItem, hear: Hear) -> ItemResult:
        """Run one item to its end; several at a time. When cancelled, have it torn down before raising, and give the
        worker the message of the cancellation as the reason. A worker that is lost is an `InfrastructureError`."""

    def capacity(self) -> Capacity | None:
        """Asked once, before the first item. None: this host's."""

    async def close(self) -> None:
        """End every worker. Safe to call again."""


@dataclass(frozen=True, slots=True)
class ExecutorContext:
    """What an executor is opened with."""

    job_dir: Path
    """Where results go: workers have to see it under the same path."""
    concurrency: int
    """The most items at a time that the user asked for; 0: as many as fit."""
    options: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The user's variables, with their keys. Workers need them; never write them down."""
    gateway: Callable[[str, Mapping[str, str]], Awaitable[Gateway]] | None = None
    """The job's running gateway of a name and options, for workers on its host: they share it (`JobGateways`)."""


class JobGateways(Protocol):
    """The gateways of a job as its workers see them."""

    def gateway(self, name: str, options: Mapping[str, str]) -> Gateway: ...

    async def close(self) -> None:
        """Safe to call again."""


class JobWorker(Protocol):
    """The core in a worker process: it runs items of one job there, several at a time."""

    async def run(self, item: PlanItem) -> ItemResult:
        """Run one. Whatever goes wrong is in the rollout's own result, or in this one."""

    def cancel(self, item: str, reason: str) -> None:
        """Have an item torn down; its result says why."""

    def abandon(self) -> None:
        """Write no result any more: the job's process is gone."""

    async def close(self) -> None: ...


OpenWorker = Callable[[Hear, Callable[[], "JobGateways | None"]], JobWorker]
"""Makes the worker of this process, from what takes its messages, and from what gives the job's gateways when the first
item comes; without any the worker opens its own."""


@dataclass(frozen=True, slots=True)
class ExecutorSpec:
    """An executor.

    Example::

        @hookimpl
        def benchflow_executor() -> ExecutorSpec:
            return ExecutorSpec(summary="Ray cluster", open=open_ray, on_host=False)
    """

    summary: str
    open: Callable[[ExecutorContext], Executor]
    """Called off the event loop. The place to import an SDK and to connect."""
    on_host: bool = True
    """Workers run on the host of the job: they may share its gateway, and images are prepared for them. False: on hosts
    of their own, where each worker opens a gateway and prepares its images."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What `--executor-option` knows: name to one line of help. Others are refused."""
    available: Callable[[], Availability] = lambda: Availability(True)
    check: CheckFn = no_checks
