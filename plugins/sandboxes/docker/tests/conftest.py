"""A provider on the engine that answers here, and boxes in it."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchflow_core.contracts import ImageRequest, Lease, Sandbox, SandboxContext, SandboxProvider, StartRequest
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.host import find
from benchflow_sandbox_docker.plugin import benchflow_sandbox

Open = Callable[..., SandboxProvider]
Start = Callable[..., Awaitable[Sandbox]]

IMAGE = "debian:bookworm-slim"


@pytest.fixture
def engine() -> EngineClient:
    """Where there is none the test is skipped; CI makes sure that there is one."""
    found = benchflow_sandbox().available()
    if not found.ok:
        pytest.skip(f"no Docker engine: {found.reason}")
    return EngineClient(find())


@pytest_asyncio.fixture
async def mark(engine: EngineClient) -> AsyncIterator[str]:
    """A label of this test's own; whatever carries it is removed afterwards."""
    label = secrets.token_hex(6)
    yield label
    spec = benchflow_sandbox()
    assert spec.reap is not None
    for lease in await leases(label):
        await spec.reap(lease)


async def leases(label: str) -> list[Lease]:
    return [lease async for lease in benchflow_sandbox().list_leases() if lease.labels.get("test") == label]


@pytest.fixture
def find_leases() -> Callable[[str], Awaitable[list[Lease]]]:
    return leases


@pytest_asyncio.fixture
async def open_provider(tmp_path: Path, mark: str) -> AsyncIterator[Open]:
    """Providers on one cache, closed afterwards."""
    opened: list[SandboxProvider] = []

    def open_() -> SandboxProvider:
        work = tmp_path / f"work{len(opened)}"
        work.mkdir()
        context = SandboxContext(work, tmp_path / "cache", labels={"test": mark}, env=dict(os.environ), concurrency=4)
        opened.append(benchflow_sandbox().open(context))
        return opened[-1]

    yield open_
    for provider in opened:
        await provider.close()


@pytest.fixture
def provider(open_provider: Open) -> SandboxProvider:
    return open_provider()


@pytest_asyncio.fixture
async def start(provider: SandboxProvider) -> Start:
    async def start_(image: Any = None, **changes: Any) -> Sandbox:
        image = image or await provider.prepare(ImageRequest(image=IMAGE))
        return await provider.start(image, StartRequest(name="test", **changes))

    return start_


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., ImageRequest]:
    """A build context with these files; `dockerfile` is its Dockerfile."""

    def make(dockerfile: str, files: dict[str, str] | None = None, **more: Any) -> ImageRequest:
        folder = tmp_path / f"context-{secrets.token_hex(4)}"
        for name, text in {"Dockerfile": dockerfile, **(files or {})}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return ImageRequest(context=folder, dockerfile=folder / "Dockerfile", **more)

    return make
