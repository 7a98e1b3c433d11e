"""Real parts for these tests: a model, a job's models, and a box whose processes are processes of this host."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchflow_core.contracts import BoxInfo, HostEndpoint
from benchflow_core.gateway import Models
from benchflow_core.plugins import Policy, Registry, registry


class HostProcess:
    """`contracts.Process` over a child of ours."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child

    @property
    def pid(self) -> int | None:
        return self._child.pid

    async def read(self, limit: int = 65536) -> bytes:
        assert self._child.stdout is not None
        return await self._child.stdout.read(limit)

    async def read_stderr(self, limit: int = 65536) -> bytes:
        assert self._child.stderr is not None
        return await self._child.stderr.read(limit)

    async def write(self, data: bytes) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(data)
        await self._child.stdin.drain()

    async def close_stdin(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()

    async def wait(self) -> int:
        return await self._child.wait()

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        with suppress(RuntimeError):  # asyncio waits for pipes that nobody reads, and refuses a second reader
            while await self.read() or await self.read_stderr():
                pass
        await self._child.wait()


class HostBox:
    """As much of a sandbox as a tunnel needs. It has no way of its own to show a host server."""

    def __init__(self) -> None:
        self.info = BoxInfo("host", "/")
        self.processes: list[HostProcess] = []
        self.argv: list[tuple[str, ...]] = []

    async def spawn(self, argv: Sequence[str], **_: Any) -> HostProcess:
        self.argv.append(tuple(argv))
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            *argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, limit=2**20
        )
        self.processes.append(HostProcess(child))
        return self.processes[-1]

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        raise NotImplementedError

    async def kill_all(self) -> None:
        for process in self.processes:
            await process.kill()


@pytest_asyncio.fixture
async def host_box() -> AsyncIterator[HostBox]:
    box = HostBox()
    yield box
    await box.kill_all()


@pytest.fixture
def model_env(local_model: Any) -> dict[str, str]:
    """An environment in which every provider is the local model."""
    local_model.key = "sk-provider-0123456789"
    base = local_model.base_url
    return {
        "OPENAI_API_KEY": local_model.key,
        "OPENAI_BASE_URL": f"{base}/v1",
        "ANTHROPIC_API_KEY": local_model.key,
        "ANTHROPIC_BASE_URL": base,
        "GEMINI_API_KEY": local_model.key,
        "GOOGLE_GEMINI_BASE_URL": base,
        "BENCHFLOW_PROVIDER_BASE_URL": f"{base}/v1",
        "BENCHFLOW_PROVIDER_API_KEY": local_model.key,
    }


@pytest_asyncio.fixture
async def open_models(tmp_path: Path) -> AsyncIterator[Callable[[Mapping[str, str]], Models]]:
    opened: list[Models] = []

    def make(env: Mapping[str, str], *, without: Sequence[str] = (), **options: Any) -> Models:
        plugins = Registry(Policy(blocked=tuple(without))) if without else registry()
        opened.append(Models(plugins, env, lambda: tmp_path, **options))
        return opened[-1]

    yield make
    for models in opened:
        await models.close()
