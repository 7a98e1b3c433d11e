"""One attempt at one rollout of a job. Whatever goes wrong in it ends up typed in its own result, nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

from benchflow_core.errors import BenchflowError
from benchflow_core.evaluation.feature_jobs import FeatureJobs
from benchflow_core.evaluation.folders import set_aside, write_broken
from benchflow_core.evaluation.jobfile import Entry
from benchflow_core.evaluation.runner import Tell
from benchflow_core.results.files import out_of_files
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.observers import ObserverBus
from benchflow_core.rollout.rollout import Rollout
from benchflow_core.settings.models import JobSettings, RolloutConfig

__all__ = ["Attempts"]


class Attempts:
    """Runs rollouts of one job on one host, and knows which are alive."""

    def __init__(
        self,
        config: JobSettings,
        job_dir: Path,
        host: Host,
        bus: ObserverBus,
        tell: Tell,
        warn: Callable[[str], None],
        features: FeatureJobs,
    ) -> None:
        self._features = features
        self._config, self._job_dir, self._host, self._bus = config, job_dir, host, bus
        self._tell, self._warn = tell, warn
        self.live: dict[str, Any] = {}
        """By name: a `Rollout`, or a `RemoteRollout` of a worker."""
        self._image_keys: dict[int, str] = {}

    def image_key(self, entry: Entry) -> str:
        """Rollouts of the same key share an image; one that is refused needs none."""
        plan = entry.item.plan
        if plan is None:
            return ""
        if id(plan) not in self._image_keys:
            config = self._rollout_config(entry)
            wanted = plan.image_request(config), [layer.key for layer in plan.layers()], plan.runtimes()
            self._image_keys[id(plan)] = f"{plan.sandbox.name} {config.sandbox_options} {wanted}"
        return self._image_keys[id(plan)]

    async def image(self, entry: Entry) -> None:
        """Have its image made. What fails here fails again, at once, in the rollout, where it is recorded."""
        if entry.item.plan is not None:
            try:
                rollout = await Rollout.create(self._rollout_config(entry), self._host, plan=entry.item.plan)
                await rollout.prepared_image()
            except Exception:
                return

    async def run(self, entry: Entry) -> dict[str, Any]:
        """Its result. Only a stop of the whole job gets out of here, after the rollout was torn down."""
        if entry.item.refusal is not None:
            return self._broken(entry, entry.item.refusal)
        task = asyncio.current_task()
        try:
            if entry.attempt > 1 or entry.failures:
                entry.attempt = set_aside(self._job_dir, entry.name)
            return await self._carry_out(entry)
        except BenchflowError as error:
            return self._broken(entry, error)
        except asyncio.CancelledError:
            if task is not None and task.cancelling():
                raise
            return self._defect(entry, "it was cancelled from inside")
        except (Exception, SystemExit) as error:
            return self._defect(entry, f"{type(error).__name__}: {error}")
        finally:
            self.live.pop(entry.name, None)

    async def _carry_out(self, entry: Entry) -> dict[str, Any]:
        rollout = await Rollout.create(self._rollout_config(entry), self._host, plan=entry.item.plan, bus=self._bus)
        self.live[entry.name] = rollout
        self._say_started(entry)
        return (await rollout.run()).to_json()

    def _say_started(self, entry: Entry) -> None:
        told = {"rollout": entry.name, "task": entry.item.task_path.name, "attempt": entry.attempt}
        self._tell("started", {**told, "arm": entry.item.arm})

    def _rollout_config(self, entry: Entry) -> RolloutConfig:
        item = entry.item
        return self._config.rollout(
            item.task_path,
            jobs_dir=self._job_dir.parent,
            job_name=self._job_dir.name,
            rollout_name=entry.name,
            trial=item.trial,
            attempt=entry.attempt,
            arm=item.arm,
            order=entry.order,
            seed=self._config.seed,
            user=copy(self._config.user),  # each rollout's own: two at a time must not share what it remembers
            **self._features.next(),
        )

    def _defect(self, entry: Entry, what: str) -> dict[str, Any]:
        error = BenchflowError(f"defect in the rollout: {what}", retryable=False)
        self._warn(f"{entry.name}: {error.message}")
        return self._broken(entry, error)

    def _broken(self, entry: Entry, error: BenchflowError) -> dict[str, Any]:
        error = out_of_files(error) or error
        try:
            features = self._host.plugins.all("feature")
            keys = [key for feature in features for key in feature.spec.keys.get("result", ())]
            return write_broken(self._job_dir, entry, error, self._rollout_config(entry), keys)
        except BenchflowError as full:
            self._warn(f"{entry.name}: {full.message}")
            empty = {"task_name": entry.item.task_path.name, "rollout_name": entry.name, "trial": entry.item.trial}
            return {**empty, "rewards": None, "error": error.message, "error_info": error.to_json()}
