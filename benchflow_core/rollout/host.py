"""What the rollouts of a job share on this host: open providers, caches, the environment, the secrets to hide."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from benchflow_core.contracts.common import Layer, Runtime, abandoned_folders, process_mark
from benchflow_core.contracts.sandboxes import ImageRef, ImageRequest, SandboxContext, SandboxProvider
from benchflow_core.dotenv import user_env
from benchflow_core.errors import BenchflowError, PluginFailed
from benchflow_core.plugins import Loaded, Registry, registry
from benchflow_core.results.files import cannot_write, write_bytes
from benchflow_core.results.layout import cache_dir
from benchflow_core.results.redact import Redactor
from benchflow_core.rollout.boxes import stage_logs
from benchflow_core.rollout.guarded import GuardedProvider
from benchflow_core.rollout.hostwatch import HostWatch

if TYPE_CHECKING:
    from benchflow_core.contracts.executors import JobGateways
    from benchflow_core.gateway import Models

__all__ = ["Host", "cache_dir", "private_leftovers"]

T = TypeVar("T")


class Host:
    """One per job. Close it, and nothing is left: providers, boxes and the private folder go."""

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        concurrency: int = 1,
        build_concurrency: int | None = None,
        plugins: Registry | None = None,
        gateways: JobGateways | None = None,
    ) -> None:
        self.env: dict[str, str] = user_env() if env is None else dict(env)
        self.plugins = plugins or registry()
        self.redactor = Redactor.from_env(self.env)
        self.concurrency = concurrency
        self._asked_builds = build_concurrency
        self.build_concurrency = build_concurrency or min(concurrency, 4)
        self.cache = cache_dir(self.env)
        self._work: Path | None = None
        self._job_gateways = gateways
        self.worker: dict[str, Any] | None = None
        """As `lock.json` names who ran it, where that is not the job's own process."""
        self.orphaned = False
        """The job's process is gone: what runs is torn down, and writes no result, for the job may go on elsewhere."""
        self.watch = HostWatch(folder=self.cache)
        self._providers: dict[tuple[str, tuple[tuple[str, str], ...]], SandboxProvider] = {}
        self._images: dict[str, asyncio.Task[ImageRef]] = {}
        self._shared: dict[str, asyncio.Task[Any]] = {}
        self._lock = asyncio.Lock()

    def sweep(self) -> None:
        """Remove the private folders of killed processes."""
        for folder in private_leftovers(self.cache):
            shutil.rmtree(folder, ignore_errors=True)

    def set_concurrency(self, count: int) -> None:
        """How many rollouts will run together, once the plan tells; before the first provider is opened."""
        self.concurrency = count
        self.build_concurrency = self._asked_builds or min(count, 4)
        if "models" in self.__dict__:
            self.models.expect(count)

    @cached_property
    def models(self) -> Models:
        """Made when the first agent needs one."""
        from benchflow_core.gateway import Models

        return Models(
            self.plugins, self.env, lambda: self.work_dir, concurrency=self.concurrency, job=self._job_gateways
        )

    @property
    def work_dir(self) -> Path:
        """Private to this process; what a killed one left is swept on the way."""
        if self._work is None:
            parent = self.cache / "work"
            work = parent / f"{process_mark()}-{time.monotonic_ns()}"
            try:
                parent.mkdir(parents=True, exist_ok=True)
                self.sweep()
                work.mkdir(mode=0o700)
            except OSError as error:
                raise cannot_write(work, error, elsewhere="Name another cache folder with BENCHFLOW_CACHE.") from error
            self._work = work
        return self._work

    @cached_property
    def log_folders(self) -> Path:
        """What is uploaded as `/logs` into every box."""
        return stage_logs(self.work_dir / "logs")

    def text_file(self, text: str) -> Path:
        """A file that holds this text, for uploads: made once per job, however many boxes get it."""
        data = text.encode()
        path = self.work_dir / f"text-{hashlib.sha256(data).hexdigest()}"
        if not path.exists():
            write_bytes(path, data)
        return path

    async def provider(self, sandbox: Loaded, options: Mapping[str, str]) -> SandboxProvider:
        """The open provider of a sandbox; opened on first use."""
        key = (f"{sandbox.distribution}:{sandbox.name}", tuple(sorted(options.items())))
        async with self._lock:
            if key not in self._providers:
                folder = self.work_dir / f"{sandbox.name}-{len(self._providers)}"
                folder.mkdir(exist_ok=True)  # an earlier try may have failed after this
                context = SandboxContext(
                    work_dir=folder,
                    cache_dir=self.cache / "sandboxes" / sandbox.name,
                    labels={"owner": f"{os.getpid()}"},
                    env=self.env,
                    options=options,
                    concurrency=self.concurrency,
                    build_concurrency=self.build_concurrency,
                )
                opened = await asyncio.to_thread(sandbox.spec.open, context)
                self._providers[key] = GuardedProvider(opened, sandbox.who)
            return self._providers[key]

    async def image(
        self,
        sandbox: Loaded,
        options: Mapping[str, str],
        request: ImageRequest,
        layers: Sequence[Layer],
        runtimes: Sequence[Runtime],
    ) -> ImageRef:
        """The prepared image, made once per job: every trial of a task asks for the same.

        Whoever is cancelled while waiting does not cancel the others. A failure that is worth another try is forgotten.
        """
        self.watch.start()
        wanted = [layer.key for layer in layers], runtimes
        key = f"{sandbox.distribution}:{sandbox.name} {sorted(options.items())} {request} {wanted}"
        if key not in self._images:
            provider = await self.provider(sandbox, options)
            if key not in self._images:
                self._images[key] = asyncio.create_task(provider.prepare(request, layers, runtimes))
        task = self._images[key]
        try:
            return await asyncio.shield(task)
        except BaseException as error:
            if task.done() and not (isinstance(error, BenchflowError) and not error.retryable):
                self._images.pop(key, None)
            raise

    async def once(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """Return what all rollouts of the job share under a key; made by the first that needs it.

        One with a `teardown` is torn down with the job.
        """
        if key not in self._shared:
            self._shared[key] = asyncio.ensure_future(make())
        task = self._shared[key]
        try:
            found: T = await asyncio.shield(task)
            return found
        except BaseException:
            if task.done() and self._shared.get(key) is task:
                del self._shared[key]
            raise

    async def _end_shared(self) -> None:
        shared, self._shared = list(self._shared.values()), {}
        for task in shared:
            if not task.done():
                task.cancel()
        for thing in await asyncio.gather(*shared, return_exceptions=True):
            if not isinstance(thing, BaseException) and hasattr(thing, "teardown"):
                await thing.teardown()

    def forget_images(self) -> None:
        """A box did not start: the next one asks the provider again whether its image is still there."""
        self._images = {key: task for key, task in self._images.items() if not task.done() or task.exception()}

    async def close(self) -> None:
        await self.watch.close()
        images, self._images = list(self._images.values()), {}
        for task in images:
            task.cancel()
        await asyncio.gather(*images, return_exceptions=True)
        await self._end_shared()
        open_, self._providers = [provider.close() for provider in self._providers.values()], {}
        if "models" in self.__dict__:
            open_.append(self.models.close())
        try:
            results = await asyncio.gather(*open_, return_exceptions=True)
        finally:
            if self._work is not None:
                await asyncio.to_thread(shutil.rmtree, self._work, ignore_errors=True)
                self._work = None
                self.__dict__.pop("log_folders", None)
        for problem in results:
            if isinstance(problem, PluginFailed):  # what was measured stands
                self.plugins.warn(problem)
            elif isinstance(problem, BaseException):
                raise problem

    async def __aenter__(self) -> Self:
        self.watch.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def private_leftovers(cache: Path) -> list[Path]:
    """What killed processes left: their folders in the cache, and files that were on their way into or out of a box."""
    return [*abandoned_folders(cache / "work"), *abandoned_folders()]
