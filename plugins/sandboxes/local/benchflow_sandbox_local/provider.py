"""The provider: what a job holds open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchflow_boxkit.inside.launch import DEFAULT_PATH

from benchflow_core.contracts.common import Layer, Runtime
from benchflow_core.contracts.sandboxes import ImageRef, ImageRequest, SandboxContext, Snapshot, StartRequest
from benchflow_core.errors import SandboxStartError
from benchflow_sandbox_local import runtimes as host_runtimes
from benchflow_sandbox_local.engine import Engine, Layering
from benchflow_sandbox_local.hostenv import host_environment
from benchflow_sandbox_local.images import Images
from benchflow_sandbox_local.sandbox import LocalSandbox

__all__ = ["LocalProvider"]


class LocalProvider:
    def __init__(self, context: SandboxContext) -> None:
        self.engine = Engine(context)
        self._boxes: set[LocalSandbox] = set()
        self._path = f"{DEFAULT_PATH}:{os.path.dirname(self.engine.python.inside)}"
        self._host_env = host_environment(context.env)
        self._images = Images(self.engine, self._build_box, self._path)

    async def prepare(
        self, request: ImageRequest, layers: Sequence[Layer] = (), runtimes: Sequence[Runtime] = ()
    ) -> ImageRef:
        wanted = [*runtimes, *(runtime for layer in layers for runtime in layer.runtimes)]
        found = await asyncio.to_thread(host_runtimes.require, wanted, self.engine.python)
        await self.engine.open()
        image = await self._images.image(request)
        return replace(await self._images.add_layers(image, layers), runtimes=found)

    async def start(self, image: ImageRef, request: StartRequest) -> LocalSandbox:
        return await self._start(image, request, {})

    async def _start(self, image: ImageRef, request: StartRequest, writable: Mapping[str, str]) -> LocalSandbox:
        if not image.ref.startswith("local:"):
            raise SandboxStartError(f"The image {image.ref} was not prepared by the embedded sandbox.", retryable=False)
        await self.engine.open()
        env = self._environment(image, request)
        sandbox = LocalSandbox(self.engine, image, request, env, self._boxes.discard, writable)
        self._boxes.add(sandbox)
        try:
            await sandbox.begin(request.revert)
        except BaseException:
            await asyncio.shield(sandbox.stop())
            raise
        return sandbox

    async def _build_box(self, image: ImageRef, writable: Mapping[str, str]) -> LocalSandbox:
        return await self._start(image, StartRequest(name="build", labels={"purpose": "build"}), writable)

    def _environment(self, image: ImageRef, request: StartRequest) -> dict[str, str]:
        env = {"PATH": self._path, "LANG": "C.UTF-8", "PIP_BREAK_SYSTEM_PACKAGES": "1"}
        return {**env, **self._host_env, **image.env, **request.env}

    async def forget(self, snapshot: Snapshot) -> None:
        self.engine.forget(Layering.of(snapshot.image.meta).layers[:1])

    async def close(self) -> None:
        await asyncio.gather(*(sandbox.stop() for sandbox in list(self._boxes)), return_exceptions=True)
        await self.engine.close()
