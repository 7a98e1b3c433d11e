"""Rollouts of a job that run in workers of an executor. Everything about the job itself stays in its own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from benchflow_core import __version__
from benchflow_core.contracts import events as ev
from benchflow_core.contracts.executors import Capacity, Executor, ExecutorContext, PlanItem
from benchflow_core.errors import (
    CapabilityMissing,
    ConfigurationError,
    InfrastructureError,
    WorkerLost,
    error_from_json,
)
from benchflow_core.evaluation.attempt import Attempts
from benchflow_core.evaluation.feature_jobs import FeatureJobs
from benchflow_core.evaluation.folders import read_result
from benchflow_core.evaluation.items import Item
from benchflow_core.evaluation.jobfile import Entry
from benchflow_core.evaluation.reopen import reap_left
from benchflow_core.evaluation.runner import Tell
from benchflow_core.plugins import Loaded
from benchflow_core.quick import dataclass
from benchflow_core.results.files import read_jsonl
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.observers import ObserverBus
from benchflow_core.rollout.plan import Plan
from benchflow_core.settings.models import JobSettings, RolloutConfig
from benchflow_core.settings.written import code_in, dump, whole

__all__ = ["OpenExecutor", "RemoteAttempts", "RemoteRollout", "find_executor", "job_of", "make_item", "open_executor"]


@dataclass(frozen=True)
class OpenExecutor:
    """An executor that was opened for a job."""

    loaded: Loaded
    executor: Executor

    @property
    def capacity(self) -> Capacity | None:
        return self.executor.capacity()


@asynccontextmanager
async def open_executor(
    config: JobSettings, items: Sequence[Item], host: Host, job_dir: Path
) -> AsyncIterator[OpenExecutor | None]:
    """Open what runs the rollouts of this job; nothing for its own process. Closed, no worker is left."""
    if config.executor is None:
        if config.executor_options:
            raise ConfigurationError("--executor-option says nothing without --executor.")
        yield None
        return
    loaded = find_executor(config, items, host)
    running = host.models.running if loaded.spec.on_host else None
    context = ExecutorContext(job_dir.absolute(), config.concurrency or 0, config.executor_options, host.env, running)
    executor = await asyncio.to_thread(loaded.spec.open, context)
    try:
        yield OpenExecutor(loaded, executor)
    finally:
        await executor.close()


def find_executor(config: JobSettings, items: Sequence[Item], host: Host) -> Loaded:
    """Return the job's executor. What an item in JSON cannot carry, or processes cannot share, is refused."""
    assert config.executor is not None
    loaded = host.plugins.get("executor", config.executor)
    name = loaded.name
    if code := code_in(config):
        raise ConfigurationError(
            f"'{code[0]}' is Python code, which executor '{name}' cannot give to its workers.",
            remedy="Run the job without an executor.",
        )
    if why := next((item.plan.features.host_only for item in items if item.plan and item.plan.features.host_only), ""):
        raise CapabilityMissing(
            f"{why}, and executor '{name}' runs rollouts in processes of their own.",
            remedy="Run the job without an executor.",
        )
    for option in config.executor_options:
        if option not in loaded.spec.options:
            close = get_close_matches(option, loaded.spec.options, 1)
            known = ", ".join(loaded.spec.options) or "none"
            raise ConfigurationError(
                f"executor '{name}' has no option '{option}'.",
                remedy=f"Did you mean '{close[0]}'?" if close else f"Its options: {known}.",
            )
    found = loaded.spec.available()
    if not found.ok:
        raise ConfigurationError(f"executor '{name}' is not available: {found.reason}.", remedy=found.remedy)
    return loaded


@dataclass
class RemoteRollout:
    """A rollout that runs in a worker, as far as this process knows it. Observers may hold it."""

    name: str
    dir: Path
    task: str
    arm: str | None
    attempt: int
    tell: Callable[[ev.Event], None]
    row: dict[str, Any] = field(default_factory=dict)
    phase: str = "created"
    stopped: bool = False
    work: asyncio.Task[Any] | None = None

    def events(self) -> Sequence[Mapping[str, Any]]:
        return list(read_jsonl(self.dir / "events.jsonl"))

    def cancel(self, reason: str) -> None:
        """From any thread. Its worker tears it down."""
        if self.work is not None:
            self.stopped = True
            self.work.get_loop().call_soon_threadsafe(self.work.cancel, reason)

    def hear(self, message: Mapping[str, Any]) -> None:
        """What its worker says while it runs."""
        if "live" in message:
            self.row = dict(message["live"])
            self.phase = self.row["phase"]
        elif "event" in message:
            data = dict(message["event"]["data"])
            self.phase = data.get("phase", self.phase)
            kind = getattr(ev, message["event"]["type"])
            self.tell(kind(**{**data, "job_dir": Path(data["job_dir"])}, rollout=self))


class RemoteAttempts(Attempts):
    """Attempts that an executor's workers make."""

    def __init__(
        self,
        executor: OpenExecutor,
        config: JobSettings,
        job_dir: Path,
        host: Host,
        bus: ObserverBus,
        tell: Tell,
        warn: Callable[[str], None],
        features: FeatureJobs,
    ) -> None:
        super().__init__(config, job_dir, host, bus, tell, warn, features)
        self._executor = executor

    async def image(self, entry: Entry) -> None:
        """Prepare the image for workers on this host; others make their own."""
        if self._executor.loaded.spec.on_host:
            await super().image(entry)

    async def _carry_out(self, entry: Entry) -> dict[str, Any]:
        name, plan = entry.name, entry.item.plan
        assert plan is not None
        task = entry.item.task_path.name
        remote = RemoteRollout(name, self._job_dir / name, task, entry.item.arm, entry.attempt, self._bus.send)
        remote.work = asyncio.current_task()
        self.live[name] = remote
        self._say_started(entry)
        try:
            done = await self._executor.executor.run(self._item(entry, plan), remote.hear)
        except WorkerLost:
            await self._clean_after(plan)
            raise
        except asyncio.CancelledError:
            if not remote.stopped or remote.work is None:
                raise
            remote.work.uncancel()
            return self._result(name)
        if done.error is not None:
            raise error_from_json(done.error)
        return self._result(name)

    def _result(self, name: str) -> dict[str, Any]:
        result = read_result(self._job_dir, name)
        if result is None:
            raise InfrastructureError(f"the worker left no result.json in {self._job_dir / name}.")
        return result

    def _item(self, entry: Entry, plan: Plan) -> PlanItem:
        job = job_of(self._host, self._executor.loaded.stamp(), observed=self._bus.active)
        return make_item(self._rollout_config(entry), plan, job)

    async def _clean_after(self, plan: Plan) -> None:
        """Remove what a dead worker left on this host: its boxes and its private folder."""
        if self._executor.loaded.spec.on_host:
            await asyncio.to_thread(self._host.sweep)
            await reap_left([plan.sandbox], self._warn)


def make_item(config: RolloutConfig, plan: Plan, job: Mapping[str, Any]) -> PlanItem:
    """Return one attempt as JSON: what a worker needs to do exactly what was planned here."""
    places = {"task_path": config.task_path.absolute(), "jobs_dir": config.jobs_dir.absolute()}
    config = config.model_copy(update=places)
    resources = plan.task.environment.resources
    used = {(p["distribution"], p["version"]) for p in [*plan.plugins(), job["executor"]]}
    return PlanItem(
        id=config.rollout_name or "",
        config=dump(config, whole),
        task_source={"path": str(config.task_path), "provenance": config.source_provenance},
        task_digest=plan.digest,
        requirements=sorted({f"benchflow-core=={__version__}", *(f"{d}=={v}" for d, v in used if d)}),
        job=job,
        cpus=1.0 if resources.cpus is None else resources.cpus,
        memory_mb=resources.memory_mb or 1024,
    )


def job_of(host: Host, executor: Mapping[str, str], *, observed: bool) -> dict[str, Any]:
    """Return what every item says of its job."""
    return {
        "cwd": str(Path.cwd()),
        "concurrency": host.concurrency,
        "build_concurrency": host.build_concurrency,
        "policy": asdict(host.plugins.policy),
        "observed": observed,
        "executor": executor,
    }
