"""What the cases need to know of a vendor, and what they work with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from benchflow_core.contracts import ImageRef, ImageRequest, Resources, SandboxContext, SandboxProvider, SandboxSpec
from benchflow_core.errors import BenchflowError

__all__ = ["IMAGE", "CloudCase", "Open", "Refusal", "Wire"]

IMAGE = "debian:bookworm-slim"
Open = Callable[..., SandboxProvider]


@dataclass(frozen=True)
class Refusal:
    """An answer to a request for a box, and what it has to become."""

    status: int
    expected: type[BenchflowError]
    retry_after: float | None = None
    times: int = 1
    """How often an SDK that tries again by itself has to hear it."""


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A vendor, in the names of requests that `Remote.requests` counts."""

    name: str
    package: str
    create: str
    """Makes a box."""
    output: str
    """Its answer carries what a box prints."""
    box: Mapping[str, int]
    """Requests of one box, from its start to its removal."""
    job: Mapping[str, int]
    """Requests of a job with known images, beyond those of its boxes."""
    chatter: str = ""
    """Requests of a box whose number depends on what is written to it."""
    cuts: tuple[Mapping[str, Any], ...]
    """Faults that break a connection in the middle of a transfer."""
    refused_when_dead: str = ""
    """The request with which a client learns that a box is gone, where killing it is not enough."""
    refusals: tuple[Refusal, ...]
    wait: float = 0.2
    """Seconds that a refusal for too many requests asks for; whole ones where the SDK reads nothing else."""
    secrets: tuple[str, ...]
    """Variables with the credentials."""
    missing: str
    """What is said where the last of them is not set."""
    login: tuple[str, Callable[[Mapping[str, str]], str]]
    """The file of the vendor's own command below a home, and its content for the right credentials."""
    wrong: tuple[Mapping[str, str], ...]
    """Options that cannot be meant, one each, after which the message is searched."""
    too_much: Resources
    said: tuple[str, ...]
    """Parts of the notices of a box that is asked for that much."""
    page: Path | None = field(default=None)
    """The documentation, which has to name every option."""


class CloudCase:
    """`wire` is the vendor; the fixture `cloud` is its server, of the plugin's own conftest."""

    wire: ClassVar[Wire]

    @pytest.fixture
    def spec(self) -> SandboxSpec:
        found: SandboxSpec = import_module(f"{self.wire.package}.plugin").benchflow_sandbox()
        return found

    @pytest_asyncio.fixture
    async def open_provider(self, spec: SandboxSpec, tmp_path: Path, cloud_cache: Path) -> AsyncIterator[Open]:
        opened: list[SandboxProvider] = []

        def open_(**options: str) -> SandboxProvider:
            work = tmp_path / f"work{len(opened)}"
            work.mkdir(exist_ok=True)
            opened.append(spec.open(SandboxContext(work_dir=work, cache_dir=cloud_cache, options=options)))
            return opened[-1]

        yield open_
        for provider in opened:
            await provider.close()

    @pytest.fixture
    def provider(self, open_provider: Open) -> SandboxProvider:
        return open_provider()

    @pytest_asyncio.fixture
    async def image(self, provider: SandboxProvider) -> ImageRef:
        return await provider.prepare(ImageRequest(image=IMAGE))
