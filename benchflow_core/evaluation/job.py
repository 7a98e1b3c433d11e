"""A job: plan, write the plan down, run it, aggregate. What can be gone on with later is on disk at every moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchflow_core import __version__
from benchflow_core.contracts import events as ev
from benchflow_core.contracts.features import FinishedRollout
from benchflow_core.contracts.outcomes import planned_arms
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.attempt import Attempts
from benchflow_core.evaluation.budget import Budget, Spent
from benchflow_core.evaluation.executor import OpenExecutor, RemoteAttempts, open_executor
from benchflow_core.evaluation.export import automatic_exports
from benchflow_core.evaluation.feature_jobs import FeatureJobs
from benchflow_core.evaluation.folders import read_result, row_of
from benchflow_core.evaluation.items import Item, plan_items, select_tasks
from benchflow_core.evaluation.jobfile import Entry, JobRecord
from benchflow_core.evaluation.joblock import JobLock, wait_for_workers
from benchflow_core.evaluation.journal import Journal
from benchflow_core.evaluation.live import LiveReport
from benchflow_core.evaluation.needs import Room, make_room
from benchflow_core.evaluation.reopen import Again, check_drift, reap_left, spent_before, unfinished
from benchflow_core.evaluation.runner import Runner
from benchflow_core.evaluation.stored import results_reader
from benchflow_core.evaluation.summary import EvaluationResult, summarize, team_of
from benchflow_core.results.clock import Stopwatch, now
from benchflow_core.results.files import cannot_write, read_json, write_json
from benchflow_core.results.layout import job_name
from benchflow_core.results.reader import find_reader
from benchflow_core.rollout.credentials import check_credentials
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.observers import ObserverBus
from benchflow_core.rollout.plan import Plan
from benchflow_core.settings.models import JobSettings
from benchflow_core.settings.written import dump

__all__ = ["Evaluation", "summary_of"]

LARGE = 50
"""Rollouts from which an estimate is worth a line."""

Listener = Callable[[str, Mapping[str, Any]], None]
"""Told what `journal.jsonl` holds as it happens, and `live` about once a second, for displays."""


class Evaluation:
    """A job over the tasks of a folder."""

    def __init__(
        self,
        tasks_dir: str | Path | Sequence[Path],
        jobs_dir: str | Path = "jobs",
        config: JobSettings | None = None,
        job_name: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        listener: Listener | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.tasks_dir = tasks_dir
        self.jobs_dir = Path(jobs_dir)
        self.config = config or JobSettings()
        self._named = job_name is not None
        self.job_name = job_name or _fresh_job_name(self.jobs_dir)
        self._env = env
        self._listener = listener
        self._warn = warn or (lambda line: None)
        self._journal: Journal | None = None
        self._runner: Runner | None = None
        self._record: JobRecord | None = None
        self._again: Again = "nothing"
        self._allow_drift = False
        self._drain_early: str | None = None
        self._reopened = False
        self._names: list[str] = []
        self._features: FeatureJobs
        self._executor: OpenExecutor | None = None

    @classmethod
    def from_yaml(cls, path: str | Path, **more: Any) -> Evaluation:
        """A job as a YAML config describes it. Blocking where its tasks have to be fetched."""
        from benchflow_core.evaluation.yaml import load_job, open_job

        return open_job(load_job(path), cls, **more)

    @classmethod
    def reopen(
        cls,
        job_dir: str | Path,
        *,
        again: Again = "nothing",
        changes: Mapping[str, Any] | None = None,
        allow_drift: bool = False,
        env: Mapping[str, str] | None = None,
        listener: Listener | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> Evaluation:
        """A job that was begun earlier. `run()` goes on with what is not finished.

        `again="errors"` runs those without a score once more. `changes` are settings of the job itself: more `trials`,
        other budgets, another `concurrency`.
        """
        from benchflow_core.dotenv import user_env
        from benchflow_core.evaluation.tasks import fetch_again

        folder = Path(job_dir)
        record = JobRecord.read(folder)
        config = record.settings(user_env() if env is None else env)
        config = type(config)(**{**vars(config), **(changes or {})})
        if missing := [name for name in record.code if not getattr(config, name)]:
            raise ConfigurationError(
                f"job {record.job_name} was made in Python with '{missing[0]}', which is not written down.",
                remedy=f"Go on in Python: Evaluation.reopen(…, changes={{'{missing[0]}': …}}).",
            )
        paths = [Path(path) for path in record.tasks]
        if not all(path.is_dir() for path in paths):
            fetch_again(config.source_provenance, user_env() if env is None else env)
        if gone := [p for p in paths if not p.is_dir()]:
            raise ConfigurationError(f"task {gone[0]} is gone.", remedy="Put it back where it was.")
        job = cls(paths, folder.parent, config, folder.name, env=env, listener=listener, warn=warn)
        job._record, job._again, job._allow_drift, job._reopened = record, again, allow_drift, True
        return job

    @property
    def job_dir(self) -> Path:
        return self.jobs_dir / self.job_name

    @property
    def results(self) -> list[dict[str, Any]]:
        """A row per finished rollout, read from disk: a job of many holds none of them."""
        return [row_of(result) for result in self._finished()]

    def tasks(self) -> list[Path]:
        if isinstance(self.tasks_dir, str | Path):
            return select_tasks(Path(self.tasks_dir), self.config.include_tasks, self.config.exclude_tasks)
        return list(self.tasks_dir)

    def drain(self, reason: str = "interrupted") -> None:
        """Start nothing more; what runs is finished, and the rest can be resumed."""
        self._drain_early = self._drain_early or reason
        if self._runner is not None:
            self._runner.drain(reason)

    async def run(self) -> EvaluationResult:
        """Plan, run, aggregate. Refusals come before anything is started or written."""
        watch = Stopwatch()
        if (self.config.concurrency or 1) < 1 or self.config.trials < 1:
            raise ConfigurationError("concurrency and trials must be at least 1.")
        async with Host(env=self._env, build_concurrency=self.config.build_concurrency) as host:
            items = plan_items(self.tasks(), self.config, host)
            self._features = FeatureJobs(self.config, host.plugins)
            async with open_executor(self.config, items, host, self.job_dir) as self._executor:
                room = make_room(self._scheduling(), items, host, self._executor.capacity if self._executor else None)
                await self._check_models(items, host)
                lock = self._claim()
                try:
                    await wait_for_workers(self.job_dir, self._warn)
                    todo = self._open(items, host)
                    return await self._run(todo, room, host, watch)
                finally:
                    if self._journal is not None:
                        self._journal.close()
                    lock.release()

    # --- parts -----------------------------------------------------------------------------------------

    async def _check_models(self, items: Sequence[Item], host: Host) -> None:
        """A key that is refused is said now, not by every rollout of a fleet. A single one finds out by itself."""
        if len(items) < 2:
            return
        planned = {id(item.plan): item for item in items if item.plan is not None}
        where: dict[str, Any] = {"jobs_dir": self.jobs_dir, "job_name": self.job_name, "rollout_name": "", "attempt": 1}
        configs = [
            (item.plan, self.config.rollout(item.task_path, trial=item.trial, arm=item.arm, **where))
            for item in planned.values()
            if item.plan is not None
        ]
        await check_credentials(host, configs)

    def _claim(self) -> JobLock:
        """The folder is this job's, or it is another's."""
        if self._record is None:
            try:
                self.job_dir.mkdir(parents=True)
            except FileExistsError:
                if not self.job_dir.exists() or not self.job_dir.is_dir():
                    raise cannot_write(self.job_dir, NotADirectoryError()) from None
                if not self._named and self._executor is None:  # another job took the name of this second meanwhile
                    self.job_name = _fresh_job_name(self.jobs_dir)
                    return self._claim()
                raise ConfigurationError(
                    f"{self.job_dir} already exists.",
                    remedy=f"Choose another --job-name, or go on with it: bench eval resume {self.job_dir}",
                ) from None
            except OSError as error:
                raise cannot_write(self.job_dir, error) from error
        return JobLock(self.job_dir)

    def _open(self, items: Sequence[Item], host: Host) -> list[Entry]:
        """Write the plan, or compare with the one that was written. Gives what is to run."""
        record = self._record
        if record is None:
            shuffled = not self._features.sequential
            record = self._record = JobRecord.new(self.job_name, self.config, items, shuffled=shuffled)
        else:
            check_drift(record, items, allow=self._allow_drift, warn=self._warn)
            record.config = dump(self.config)
            record.add(items, shuffled=not self._features.sequential)
        record.write(self.job_dir, host.redactor)
        entries = record.entries(items)
        self._names = [entry.name for entry in entries]
        self._journal = Journal(self.job_dir, host.redactor)
        todo = unfinished(self.job_dir, entries, self.config.retry, self._again) if self._reopened else entries
        waiting = {entry.name for entry in todo}
        ended = [(entry, read_result(self.job_dir, entry.name)) for entry in entries if entry.name not in waiting]
        self._features.open(self.job_dir, [self._done(entry, result) for entry, result in ended if result is not None])
        return todo

    def _scheduling(self) -> JobSettings:
        """A feature may want one rollout after the other."""
        if not (feature := self._features.sequential):
            return self.config
        if (self.config.concurrency or 1) > 1:
            self._warn(f"concurrency is ignored: feature '{feature}' runs one rollout after the other.")
        return self.config.model_copy(update={"concurrency": 1})

    def _done(self, entry: Entry, result: Mapping[str, Any]) -> FinishedRollout:
        reward = (result.get("rewards") or {}).get("reward")
        return FinishedRollout(entry.name, entry.item.task_path.name, self.job_dir / entry.name, reward)

    def _ended(self, entry: Entry, result: Mapping[str, Any]) -> None:
        for said in self._features.finished(self._done(entry, result)):
            self._tell("feature", said)
        self._tell("finished", row_of(dict(result)))

    async def _run(self, todo: Sequence[Entry], room: Room, host: Host, watch: Stopwatch) -> EvaluationResult:
        watching = [*host.plugins.observers(), *automatic_exports(host.plugins.all("exporter"))]
        bus = ObserverBus(watching, self._warn)
        given = (self.config, self.job_dir, host, bus, self._tell, self._warn, self._features)
        attempts = RemoteAttempts(self._executor, *given) if self._executor else Attempts(*given)
        self._runner = runner = self._make_runner(attempts, host, room, resumed=len(self._names) > len(todo))
        report = LiveReport(self.job_dir, runner, attempts, self._tell)
        try:
            self._announce(room, len(todo), bus)
            if self._reopened:
                await asyncio.to_thread(host.sweep)
                await reap_left(list({p.sandbox.name: p.sandbox for p in room.plans}.values()), self._warn)
            if self._drain_early is not None:
                runner.drain(self._drain_early)
            for entry in todo:
                entry.image = attempts.image_key(entry)
            async with report:
                await runner.run(todo)
            return self._finish(room.plans, watch.seconds, bus)
        except asyncio.CancelledError:
            self._tell("stopped", {"reason": "stopped by the user", "left": runner.left})
            self._finish(room.plans, watch.seconds, bus)
            raise
        finally:
            await asyncio.to_thread(bus.close)

    def _make_runner(self, attempts: Attempts, host: Host, room: Room, *, resumed: bool) -> Runner:
        config = self.config
        spent = Spent()
        if resumed and self._record is not None:
            spent = spent_before(self.job_dir, self._names)
        return Runner(
            attempt=attempts.run,
            image=attempts.image,
            finished=self._ended,
            need=room.need,
            slots=room.slots,
            retry=config.retry,
            budget=Budget(config.max_cost, config.max_tokens, config.max_time),
            spent=spent,
            tell=self._tell,
            builds=host.build_concurrency,
            strict=bool(self._features.sequential),
        )

    def _tell(self, kind: str, data: Mapping[str, Any]) -> None:
        """To the journal and the display. A display that fails is not asked again."""
        if self._journal is not None and kind != "live":
            self._journal.write(kind, data)
        if self._listener is not None:
            try:
                self._listener(kind, data)
            except Exception:
                self._listener = None

    def _announce(self, room: Room, todo: int, bus: ObserverBus) -> None:
        total, first, slots = len(self._names), room.plans[0], room.slots
        self._tell(
            "planned",
            {
                "total": total,
                "done": total - todo,
                "sandbox": first.sandbox.name,
                "isolation": first.isolation,
                "chosen": self.config.sandbox is None,
                "notices": list(first.notices),
                "seed": self.config.seed,
                "concurrency": self.config.concurrency,
                "cpus": slots.cpus,
                "memory_mb": round(slots.memory_mb),
                "job_dir": str(self.job_dir),
            },
        )
        if todo >= LARGE and find_reader():
            role = next(iter(first.roles.values()))
            expected = results_reader().estimate(self.jobs_dir, self.job_name, todo, role.agent, role.model)
            self._tell("estimate", expected)
        config = {**_plain_config(self.config), "sandbox": first.sandbox.name}
        bus.send(ev.JobStarted(time=time.time(), job=self.job_name, job_dir=self.job_dir, planned=total, config=config))

    def _finished(self) -> Iterator[dict[str, Any]]:
        for name in self._names:
            if (result := read_result(self.job_dir, name)) is not None:
                yield result

    def _finish(self, plans: Sequence[Plan], seconds: float, bus: ObserverBus) -> EvaluationResult:
        assert self._runner is not None and self._record is not None
        runner = self._runner
        arms = planned_arms(vars(self._record))
        result = summarize(self.job_name, self._finished(), len(self._names), seconds, self.job_dir, arms)
        sandbox = plans[0].sandbox.name
        roles = [role for plan in plans for role in plan.roles.values()]
        agents, models = team_of({"roles": {n: {"agent": r.agent, "model": r.model} for n, r in enumerate(roles)}})
        more = {
            **_plain_config(self.config),
            **self.config.dataset_stamp(),
            "agent": agents,
            "model": models,
            "environment": sandbox,
            "sandbox": sandbox,
            "plugins": list({str(p): p for plan in plans for p in plan.plugins()}.values()),
            "core_version": __version__,
            "executor": self._executor.loaded.stamp() if self._executor else None,
            "finished_at": now(),
            "stopped": runner.stopping,
            "not_run": runner.left,
            "drift": self._record.drift,
            "total_tokens": runner.spent.tokens,
            "total_cost_usd": runner.spent.cost_usd,
            **self._features.summary(),
        }
        summary = result.to_json(more)
        write_json(self.job_dir / "summary.json", summary)
        ended = {"stopped": runner.stopping, "not_run": runner.left, "seconds": round(seconds, 3)}
        self._tell("job_finished", ended)
        bus.send(ev.JobFinished(time=time.time(), job=self.job_name, job_dir=self.job_dir, summary=summary))
        return result


def summary_of(job_dir: Path) -> tuple[EvaluationResult, dict[str, Any]]:
    """What the files of a job say now, and its `summary.json`, whoever ran it."""
    record = JobRecord.read(job_dir)
    names = [row["rollout"] for row in record.items]
    found = (row for name in names if (row := read_result(job_dir, name)) is not None)
    try:
        summary = dict(read_json(job_dir / "summary.json"))
    except (OSError, ValueError):
        summary = {}
    arms = planned_arms(vars(record))
    result = summarize(job_dir.name, found, len(names), summary.get("elapsed_sec", 0.0), job_dir, arms)
    return result, {**result.to_json({}), **summary}


def _fresh_job_name(jobs_dir: Path) -> str:
    """Two jobs of one second do not share a folder."""
    base = name = job_name()
    n = 1
    while (jobs_dir / name).exists():
        n += 1
        name = f"{base}-{n}"
    return name


def _plain_config(config: JobSettings) -> dict[str, Any]:
    """As results record it; hooks are code and variables may be secret."""
    return {key: item for key, item in dump(config).items() if key != "agent_env"}
