"""Fixtures of the sandbox suite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

import pytest
import pytest_asyncio

from benchflow_core.contracts import ImageRequest, Sandbox, SandboxSpec
from benchflow_testing_kit.plugin import PluginConformance
from benchflow_testing_kit.sandbox.bench import Bench

__all__ = ["SandboxSuite"]


class SandboxSuite(PluginConformance):
    """Opens the provider once per class and the boxes as the tests ask for them."""

    kind: ClassVar[str] = "sandbox"
    settings: ClassVar[frozenset[str]] = PluginConformance.settings | {"image_request", "sandbox_options", "public_url"}

    @pytest.fixture
    def image_request(self) -> ImageRequest:
        """The image the tests run on. Any Linux with `sh` and the usual tools will do."""
        return ImageRequest(image="debian:bookworm-slim", allow_substitute=True)

    @pytest.fixture
    def sandbox_options(self) -> Mapping[str, str]:
        """`--sandbox-option` values for the provider."""
        return {}

    @pytest.fixture
    def public_url(self) -> str | None:
        """An `http://` address outside this machine that answers GET; without one, tests that need it are skipped."""
        return None

    @pytest_asyncio.fixture(loop_scope="class", scope="class")
    @classmethod
    async def class_bench(cls) -> AsyncIterator[Bench]:
        bench = Bench()
        yield bench
        await bench.close()

    @pytest_asyncio.fixture(loop_scope="class")
    async def bench(
        self,
        request: pytest.FixtureRequest,
        class_bench: Bench,
        spec: SandboxSpec,
        image_request: ImageRequest,
        sandbox_options: Mapping[str, str],
    ) -> AsyncIterator[Bench]:
        declared = spec.capabilities() if callable(spec.capabilities) else spec.capabilities
        for capability in getattr(request.function, "benchflow_needs", ()):
            if capability not in declared:
                pytest.skip(f"capability {capability} not declared")
        async with asyncio.timeout(600):
            await class_bench.open(spec, image_request, sandbox_options)
        yield class_bench
        async with asyncio.timeout(120):
            await class_bench.after_test()

    @pytest_asyncio.fixture(loop_scope="class")
    async def box(self, bench: Bench) -> Sandbox:
        """A box that the tests of this class share: they work in folders of their own and leave it usable."""
        async with asyncio.timeout(120):
            return await bench.shared()

    @pytest_asyncio.fixture(loop_scope="class")
    async def scratch(self, bench: Bench, box: Sandbox) -> str:
        """An empty folder in the shared box."""
        return await bench.scratch(box)
