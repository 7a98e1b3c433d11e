"""What the rollouts of a job share on this host: open providers, caches, the environment, the secrets to hide."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from benchflow_core.contracts.sandboxes import SandboxContext, SandboxProvider
from benchflow_core.dotenv import user_env
from benchflow_core.gateway import Models
from benchflow_core.plugins import Loaded, Registry, registry
from benchflow_core.results.redact import Redactor

__all__ = ["Host", "cache_dir"]


def cache_dir(env: Mapping[str, str]) -> Path:
    """`$BENCHFLOW_CACHE`, or `benchflow` in the user's cache folder."""
    if env.get("BENCHFLOW_CACHE"):
        return Path(env["BENCHFLOW_CACHE"])
    home = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "benchflow"


class Host:
    """One per job. Close it, and nothing is left: providers, boxes and the private folder go."""

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        concurrency: int = 1,
        build_concurrency: int | None = None,
        plugins: Registry | None = None,
    ) -> None:
        self.env: dict[str, str] = user_env() if env is None else dict(env)
        self.plugins = plugins or registry()
        self.redactor = Redactor.from_env(self.env)
        self.concurrency = concurrency
        self.build_concurrency = build_concurrency or min(concurrency, 4)
        self.cache = cache_dir(self.env)
        self._work: Path | None = None
        self.models = Models(self.plugins, self.env, lambda: self.work_dir, concurrency=concurrency)
        self._providers: dict[tuple[str, tuple[tuple[str, str], ...]], SandboxProvider] = {}
        self._lock = asyncio.Lock()

    @property
    def work_dir(self) -> Path:
        """Private to this process; what a killed one left is swept on the way."""
        if self._work is None:
            parent = self.cache / "work"
            parent.mkdir(parents=True, exist_ok=True)
            _sweep(parent)
            self._work = parent / f"{os.getpid()}-{_started(os.getpid())}-{time.monotonic_ns()}"
            self._work.mkdir(mode=0o700)
        return self._work

    async def provider(self, sandbox: Loaded, options: Mapping[str, str]) -> SandboxProvider:
        """The open provider of a sandbox; opened on first use."""
        key = (f"{sandbox.distribution}:{sandbox.name}", tuple(sorted(options.items())))
        async with self._lock:
            if key not in self._providers:
                folder = self.work_dir / f"{sandbox.name}-{len(self._providers)}"
                folder.mkdir()
                context = SandboxContext(
                    work_dir=folder,
                    cache_dir=self.cache / "sandboxes" / sandbox.name,
                    labels={"owner": f"{os.getpid()}"},
                    env=self.env,
                    options=options,
                    concurrency=self.concurrency,
                    build_concurrency=self.build_concurrency,
                )
                self._providers[key] = await asyncio.to_thread(sandbox.spec.open, context)
            return self._providers[key]

    async def close(self) -> None:
        providers, self._providers = list(self._providers.values()), {}
        try:
            results = await asyncio.gather(self.models.close(), *(p.close() for p in providers), return_exceptions=True)
        finally:
            if self._work is not None:
                await asyncio.to_thread(shutil.rmtree, self._work, ignore_errors=True)
                self._work = None
        for problem in results:
            if isinstance(problem, BaseException):
                raise problem

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks: a pid alone may be someone else's by now."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"


def _sweep(parent: Path) -> None:
    for folder in parent.iterdir():
        pid, _, rest = folder.name.partition("-")
        if pid.isdigit() and _started(int(pid)) != rest.partition("-")[0]:
            with suppress(OSError):
                shutil.rmtree(folder)
