"""The core in a worker process of an executor: items of a job become rollouts."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from pydantic import TypeAdapter  # noqa: TID253
from pydantic_core import to_jsonable_python

from benchflow_core.contracts.events import Event
from benchflow_core.contracts.executors import Hear, ItemResult, JobGateways, PlanItem
from benchflow_core.contracts.settings import OfOneRollout
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import BenchflowError, Cancelled, WorkerDiffers
from benchflow_core.evaluation.joblock import hold_as_worker
from benchflow_core.evaluation.live import status_of
from benchflow_core.evaluation.tasks import find_again
from benchflow_core.plugins import Policy, configure
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.observers import ObserverBus
from benchflow_core.rollout.plan import Plan, make_plan
from benchflow_core.rollout.rollout import Rollout
from benchflow_core.settings.compose import marked
from benchflow_core.settings.models import RolloutConfig
from benchflow_core.settings.written import read
from benchflow_core.task import load_task, task_digest

__all__ = ["Worker"]

_EVERY = 1.0
_OWN = ("rollout_name", "attempt", "trial", "order", "seed")
"""What differs between rollouts that have the same plan, beside what a feature's job gives each of them."""


class Worker:
    """Runs items of one job in this process, several at a time (`contracts.executors.JobWorker`)."""

    def __init__(self, say: Hear, gateways: Callable[[], JobGateways | None]) -> None:
        self._say, self._gateways = say, gateways
        self._host: Host | None = None
        self._bus = EventsToJob(say)
        self._live: dict[str, Rollout] = {}
        self._cancelled: dict[str, str] = {}
        self._loaded: dict[Path, tuple[Task, str]] = {}
        self._plans: dict[str, Plan] = {}
        self._telling: asyncio.Task[None] | None = None

    async def run(self, item: PlanItem) -> ItemResult:
        """Whatever goes wrong is in the rollout's own result, or in this one."""
        try:
            return await self._run(item)
        except BenchflowError as error:
            return ItemResult(item.id, None, error.to_json())
        except (Exception, SystemExit) as error:
            defect = BenchflowError(f"defect in the rollout: {type(error).__name__}: {error}", retryable=False)
            return ItemResult(item.id, None, defect.to_json())
        finally:
            self._live.pop(item.id, None)
            self._cancelled.pop(item.id, None)

    async def _run(self, item: PlanItem) -> ItemResult:
        refuse_differences(tuple(item.requirements))
        host = self._open(item)
        config = read(RolloutConfig, item.config, {}, "the item")
        config = await self._find_task(config, item, host)
        plan = self._plan(config, item, host)
        if item.id in self._cancelled:
            raise Cancelled(self._cancelled[item.id])
        rollout = await Rollout.create(config, host, plan=plan, bus=self._bus)
        self._live[item.id] = rollout
        await rollout.run()
        return ItemResult(item.id, str(rollout.dir))

    def cancel(self, item: str, reason: str) -> None:
        """It is torn down; its result says why."""
        self._cancelled[item] = reason
        if item in self._live:
            self._live[item].cancel(reason)

    def abandon(self) -> None:
        """The job's process is gone: tear everything down and write no result."""
        if self._host is not None:
            self._host.orphaned = True

    async def close(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            with suppress(asyncio.CancelledError):
                await self._telling
        if self._host is not None:
            await self._host.close()

    # --- parts -----------------------------------------------------------------------------------------

    def _open(self, item: PlanItem) -> Host:
        """Return the host of this job, made by the first item: those of one job say the same about it."""
        if self._host is not None:
            return self._host
        job, folder = item.job, Path(item.config["jobs_dir"], item.config["job_name"])
        if not folder.is_dir():
            raise WorkerDiffers(
                f"{folder} is not there on {socket.gethostname()}.",
                remedy="Workers write results where the job reads them: put --jobs-dir on a file system they share.",
            )
        with suppress(OSError):
            os.chdir(job["cwd"])  # relative paths among its settings mean what they meant
        hold_as_worker(folder)
        host = Host(
            env=os.environ,
            build_concurrency=job["build_concurrency"],
            plugins=configure(TypeAdapter(Policy).validate_python(job["policy"])),
            gateways=self._gateways(),
        )
        host.set_concurrency(job["concurrency"])
        host.worker = {"executor": job["executor"], "host": socket.gethostname(), "pid": os.getpid()}
        host.watch.start()
        self._bus.wanted = job["observed"]
        self._telling = asyncio.create_task(self._tell())
        self._host = host
        return host

    async def _find_task(self, config: RolloutConfig, item: PlanItem, host: Host) -> RolloutConfig:
        """Find the task where the job has it, or fetch it again from where it came; the content is the same."""
        where = socket.gethostname()
        if not config.task_path.is_dir():
            source = item.task_source.get("provenance")
            found = await asyncio.to_thread(find_again, config.task_path.name, item.task_digest, source, host.env)
            if found is None:
                raise WorkerDiffers(f"task {config.task_path} is not there on {where}.")
            config = config.model_copy(update={"task_path": found})
        if config.task_path not in self._loaded:
            task = load_task(config.task_path)
            self._loaded[config.task_path] = (task, task_digest(task.path))
        if self._loaded[config.task_path][1] != item.task_digest:
            raise WorkerDiffers(f"task {config.task_path} on {where} is not as it was when the job was planned.")
        return config

    def _plan(self, config: RolloutConfig, item: PlanItem, host: Host) -> Plan:
        own = {*_OWN, *marked(type(config), OfOneRollout)}
        same = {name: value for name, value in item.config.items() if name not in own}
        key = json.dumps(same, sort_keys=True)
        if key not in self._plans:
            self._plans[key] = make_plan(config, host.plugins, host.env, loaded=self._loaded[config.task_path])
        return self._plans[key]

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            for name, rollout in list(self._live.items()):
                self._say({"id": name, "live": await status_of(rollout)})


class EventsToJob(ObserverBus):
    """Sends events to the job's process, where the observers are."""

    def __init__(self, say: Hear) -> None:
        super().__init__((), lambda line: None)
        self._tell = say
        self.wanted = False

    @property
    def active(self) -> bool:
        return self.wanted

    def send(self, event: Event) -> None:
        rollout = getattr(event, "rollout", None)
        if rollout is not None:
            data = {f.name: to_jsonable_python(getattr(event, f.name)) for f in fields(event) if f.name != "rollout"}
            self._tell({"id": rollout.name, "event": {"type": type(event).__name__, "data": data}})


@lru_cache(maxsize=256)
def refuse_differences(requirements: Sequence[str]) -> None:
    """Refuse to run with other versions: that would give results of another experiment."""
    found = []
    for line in requirements:
        name, _, wanted = line.partition("==")
        try:
            have = metadata.version(name)
        except metadata.PackageNotFoundError:
            found.append(f"{name} {wanted} is not installed")
        else:
            if have != wanted:
                found.append(f"{name} is {have} instead of {wanted}")
    if found:
        raise WorkerDiffers(
            f"the worker on {socket.gethostname()} is not as the job was planned: {'; '.join(found)}.",
            remedy="Install the same versions there: bench plugins list --requirements says which.",
            details={"differences": found},
        )
