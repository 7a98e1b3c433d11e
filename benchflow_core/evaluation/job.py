"""Running a job: bounded concurrency, retry by type of error, results as they come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchflow_core import __version__
from benchflow_core.contracts import events as ev
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.evaluation.config import EvaluationConfig
from benchflow_core.evaluation.items import Item, plan_items, select_tasks
from benchflow_core.evaluation.summary import EvaluationResult, summarize
from benchflow_core.results.clock import Stopwatch, now
from benchflow_core.results.files import write_json
from benchflow_core.results.layout import RolloutDir, job_name, rollout_name
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.observers import ObserverBus
from benchflow_core.rollout.result import RESULT_VERSION
from benchflow_core.rollout.rollout import Rollout

__all__ = ["Evaluation"]

Listener = Callable[[str, Mapping[str, Any]], None]
"""Told `planned`, `started`, `finished`, `retry` with data, for progress displays."""


class Evaluation:
    """A job over the tasks of a folder."""

    def __init__(
        self,
        tasks_dir: str | Path | Sequence[Path],
        jobs_dir: str | Path = "jobs",
        config: EvaluationConfig | None = None,
        job_name: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        listener: Listener | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.tasks_dir = tasks_dir
        self.jobs_dir = Path(jobs_dir)
        self.config = config or EvaluationConfig()
        self.job_name = job_name or _fresh_job_name(self.jobs_dir)
        self._env = env
        self._listener = listener or (lambda kind, data: None)
        self._warn = warn or (lambda line: None)
        self.results: list[dict[str, Any]] = []

    @classmethod
    def from_yaml(cls, path: str | Path, **more: Any) -> Evaluation:
        """A job as a YAML config describes it."""
        from benchflow_core.evaluation.yaml import load_job

        file, config = load_job(path)
        if file.tasks_dir is None:
            raise ConfigurationError(f"{path}: 'tasks_dir' is missing.", remedy="Say where the tasks are.")
        return cls(file.tasks_dir, file.jobs_dir, config, file.job_name, **more)

    @property
    def job_dir(self) -> Path:
        return self.jobs_dir / self.job_name

    def tasks(self) -> list[Path]:
        if isinstance(self.tasks_dir, str | Path):
            return select_tasks(Path(self.tasks_dir), self.config.include_tasks, self.config.exclude_tasks)
        return list(self.tasks_dir)

    async def run(self) -> EvaluationResult:
        """Plan, run, aggregate. Refusals come before anything is started or written."""
        watch = Stopwatch()
        if self.config.concurrency < 1 or self.config.trials < 1:
            raise ConfigurationError("concurrency and trials must be at least 1.")
        host = Host(env=self._env, concurrency=self.config.concurrency, build_concurrency=self.config.build_concurrency)
        async with host:
            items = plan_items(self.tasks(), self.config, host)
            if self.job_dir.exists():
                raise ConfigurationError(f"{self.job_dir} already exists.", remedy="Choose another --job-name.")
            bus = ObserverBus(host.plugins.observers(), self._warn)
            try:
                self._announce(items, bus)
                await self._run_all(items, host, bus)
                result = self._finish(len(items), watch.seconds, items)
                bus.send(
                    ev.JobFinished(
                        time=time.time(), job=self.job_name, job_dir=self.job_dir, summary=result.to_json({})
                    )
                )
                return result
            finally:
                await asyncio.to_thread(bus.close)

    # --- parts -----------------------------------------------------------------------------------------

    def _announce(self, items: Sequence[Item], bus: ObserverBus) -> None:
        first = next(item.plan for item in items if item.plan is not None)
        config = {**_plain_config(self.config), "sandbox": first.sandbox.name}
        self._listener(
            "planned",
            {
                "total": len(items),
                "sandbox": first.sandbox.name,
                "isolation": first.isolation,
                "chosen": self.config.sandbox is None,
            },
        )
        bus.send(
            ev.JobStarted(time=time.time(), job=self.job_name, job_dir=self.job_dir, planned=len(items), config=config)
        )

    async def _run_all(self, items: Sequence[Item], host: Host, bus: ObserverBus) -> None:
        """Workers take items in order. A worker that is cancelled has torn its rollout down before it ends."""
        queue = iter(items)

        async def worker() -> None:
            for item in queue:
                await self._run_item(item, host, bus)

        workers = [asyncio.create_task(worker()) for _ in range(min(self.config.concurrency, len(items)))]
        try:
            await asyncio.gather(*workers)
        except BaseException:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            raise

    async def _run_item(self, item: Item, host: Host, bus: ObserverBus) -> None:
        """Attempts until one is scored or may not be tried again; the earlier ones are kept below `attempts/`."""
        if item.plan is None:
            self._done(self._refused(item))
            return
        name = rollout_name(item.task_path.name)
        attempt = 1
        while True:
            result = await self._attempt(item, name, attempt, host, bus)
            if not _try_again(result) or attempt > self.config.retry.max_retries:
                self._done(result)
                return
            wait = self.config.retry.wait(attempt)
            self._listener("retry", {"rollout": name, "attempt": attempt, "wait": wait, "error": result["error"]})
            self._set_aside(name, attempt)
            await asyncio.sleep(wait)
            attempt += 1

    async def _attempt(self, item: Item, name: str, attempt: int, host: Host, bus: ObserverBus) -> dict[str, Any]:
        config = self.config.rollout(
            item.task_path,
            jobs_dir=self.jobs_dir,
            job_name=self.job_name,
            rollout_name=name,
            trial=item.trial,
            attempt=attempt,
        )
        self._listener("started", {"rollout": name, "task": item.task_path.name, "attempt": attempt})
        rollout = await Rollout.create(config, host, plan=item.plan, bus=bus)
        try:
            return (await rollout.run()).to_json()
        except BenchflowError as error:
            return self._broken(item, name, error)
        except Exception as error:
            defect = BenchflowError(f"defect in the rollout: {type(error).__name__}: {error}", retryable=False)
            self._warn(f"{name}: {defect.message}")
            return self._broken(item, name, defect)

    def _done(self, result: dict[str, Any]) -> None:
        self.results.append(_small(result))
        self._listener("finished", self.results[-1])

    def _refused(self, item: Item) -> dict[str, Any]:
        assert item.refusal is not None
        return self._broken(item, rollout_name(item.task_path.name), item.refusal)

    def _broken(self, item: Item, name: str, error: BenchflowError) -> dict[str, Any]:
        """A rollout that never came to write its own result still leaves one, typed."""
        result = {
            "schema_version": RESULT_VERSION,
            "task_name": item.task_path.name,
            "rollout_name": name,
            "job_name": self.job_name,
            "trial": item.trial,
            "rewards": None,
            "agent": self.config.agent,
            "model": self.config.model,
            "error": error.message,
            "error_category": error.code,
            "error_info": error.to_json(),
            "verifier_error": None,
            "finished_at": now(),
            "core_version": __version__,
        }
        path = RolloutDir(self.job_dir / name).result
        if not path.exists():
            write_json(path, result)
        return result

    def _set_aside(self, name: str, attempt: int) -> None:
        target = self.job_dir / "attempts" / f"{name}.{attempt}"
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.job_dir / name).rename(target)

    def _finish(self, planned: int, seconds: float, items: Sequence[Item]) -> EvaluationResult:
        result = summarize(self.job_name, self.results, planned, seconds, self.job_dir)
        first = next(item.plan for item in items if item.plan is not None)
        more = {
            **_plain_config(self.config),
            "agent": next(iter(first.roles.values())).agent,
            "model": next(iter(first.roles.values())).model,
            "environment": first.sandbox.name,
            "sandbox": first.sandbox.name,
            "plugins": first.plugins(),
            "core_version": __version__,
            "finished_at": now(),
        }
        write_json(self.job_dir / "summary.json", result.to_json(more))
        return result


def _fresh_job_name(jobs_dir: Path) -> str:
    """Two jobs of one second do not share a folder."""
    base = name = job_name()
    n = 1
    while (jobs_dir / name).exists():
        n += 1
        name = f"{base}-{n}"
    return name


def _plain_config(config: EvaluationConfig) -> dict[str, Any]:
    """As results record it; hooks are code and variables may be secret."""
    value = asdict(replace(config, pre_agent_hooks=()))
    return {key: item for key, item in value.items() if key not in ("agent_env", "pre_agent_hooks")}


def _small(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a job keeps of a finished rollout in memory: the rest is on disk."""
    keep = (
        "task_name",
        "rollout_name",
        "rewards",
        "error",
        "error_info",
        "verifier_error",
        "verifier_error_info",
        "image_fidelity",
        "verifier_isolation",
        "timing",
        "trial",
        "notices",
    )
    return {key: result.get(key) for key in keep}


def _try_again(result: Mapping[str, Any]) -> bool:
    info = result.get("error_info")
    return result.get("rewards") is None and bool(info) and bool(info["retryable"])  # type: ignore[index]
