"""For suites that need a box but do not test it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from benchflow_core.contracts import ImageRequest, ModelEndpoint, Sandbox
from benchflow_core.contracts.gateways import Wire
from benchflow_core.errors import BuildError
from benchflow_testing_kit.plugin import PluginConformance
from benchflow_testing_kit.resolve import resolve
from benchflow_testing_kit.sandbox.bench import Bench

__all__ = ["BoxedSuite", "scripted_model"]


def scripted_model(request: pytest.FixtureRequest, wire: Wire) -> ModelEndpoint | None:
    """The model of benchflow-testing, as this host sees it; none where that is not installed."""
    try:
        model = request.getfixturevalue("local_model")
    except pytest.FixtureLookupError:
        return None
    return ModelEndpoint(base_url=model.base_url, key="kit-model-key-4e1f", wire=wire, model="local-model")


class BoxedSuite(PluginConformance):
    """Adds a `bench` with an image that has what the plugin under test asks for, and a new `box` per test."""

    settings: ClassVar[frozenset[str]] = PluginConformance.settings | {"sandbox", "image_request", "sandbox_options"}

    @pytest.fixture
    def sandbox(self) -> object:
        """The sandbox to run in: an entry-point name or a spec."""
        return "local"

    @pytest.fixture
    def image_request(self) -> ImageRequest:
        return ImageRequest(image="debian:bookworm-slim", allow_substitute=True)

    @pytest.fixture
    def sandbox_options(self) -> Mapping[str, str]:
        return {}

    @pytest_asyncio.fixture(loop_scope="class", scope="class")
    @classmethod
    async def class_bench(cls) -> AsyncIterator[Bench]:
        bench = Bench()
        yield bench
        await bench.close()

    @pytest_asyncio.fixture(loop_scope="class")
    async def bench(
        self,
        class_bench: Bench,
        sandbox: object,
        spec: Any,
        image_request: ImageRequest,
        sandbox_options: Mapping[str, str],
    ) -> AsyncIterator[Bench]:
        found = resolve("sandbox", sandbox).spec
        declared = found.capabilities() if callable(found.capabilities) else found.capabilities
        missing = sorted(getattr(spec, "needs", frozenset()) - declared)
        if missing:
            pytest.skip(f"the sandbox does not declare {', '.join(missing)}, which the plugin needs")
        layers, runtimes = getattr(spec, "layers", ()), getattr(spec, "runtimes", ())
        async with asyncio.timeout(900):
            try:
                await class_bench.open(found, image_request, sandbox_options, layers, runtimes)
            except BuildError as error:
                if os.environ.get("CI"):
                    raise
                pytest.skip(f"what the plugin needs cannot be installed here: {error}")
        yield class_bench
        async with asyncio.timeout(120):
            await class_bench.after_test()

    @pytest_asyncio.fixture(loop_scope="class")
    async def box(self, bench: Bench) -> Sandbox:
        async with asyncio.timeout(120):
            return await bench.start()
