"""Modal, as the box kit wants a vendor: images, boxes, and what was left behind."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import modal
from benchflow_boxkit.machines import made_or_gone
from benchflow_boxkit.recipe import Recipe

from benchflow_core.contracts.sandboxes import NetworkPolicy, SandboxContext, StartRequest
from benchflow_sandbox_modal.box import ModalMachine, entrypoint
from benchflow_sandbox_modal.client import ModalClient
from benchflow_sandbox_modal.dockerfiles import image_notices
from benchflow_sandbox_modal.failures import translated
from benchflow_sandbox_modal.images import ModalImages
from benchflow_sandbox_modal.leases import ModalAccount
from benchflow_sandbox_modal.settings import ModalSettings, gpu_of

__all__ = ["VENDOR"]

_LONGEST: Final = 24 * 3600
"""Seconds that Modal lets a sandbox live."""


class ModalVendor:
    name = "modal"

    def __init__(self, context: SandboxContext, settings: ModalSettings | None = None) -> None:
        self._settings = settings or ModalSettings.of(context.env or os.environ, context.options)
        self.creates_at_once, self.create_tries = self._settings.creates_at_once, self._settings.create_tries
        self._client = ModalClient(self._settings)
        self.account = ModalAccount(self._client)
        self._images = ModalImages(self._client)

    async def find_image(self, recipe: Recipe) -> str | None:
        return await self._images.find(recipe)

    def image_notices(self, recipe: Recipe) -> tuple[str, ...]:
        return image_notices(recipe)

    async def build_image(self, recipe: Recipe, context: Path) -> str:
        return await self._images.build(recipe, context)

    async def start(
        self, image: str, request: StartRequest, policy: NetworkPolicy, labels: Mapping[str, str]
    ) -> ModalMachine:
        settings, size = self._settings, self._settings.sizes.fit(request.resources)
        gpu, notices = gpu_of(size)
        client = await self._client.sdk()
        options: dict[str, Any] = {
            "app": await self._client.app(),
            "client": client,
            "image": self._images.get(image) or modal.Image.from_id(image, client=client),
            "tags": dict(labels),
            "timeout": min(_LONGEST, max(10, math.ceil(request.expires_after))),
            "cpu": (size.cpus, size.cpus),
            "memory": (size.memory, size.memory),
            "gpu": gpu,
            "region": list(settings.regions) or None,
            "cloud": settings.cloud,
            "block_network": policy.mode != "public",
        }
        sandbox = await made_or_gone(lambda: self._make(options), lambda made: made.terminate.aio())
        notices = size.notices + notices
        if request.expires_after > _LONGEST:
            notices += (f"Modal ends a box after {_LONGEST // 3600} hours.",)
        return ModalMachine(sandbox, notices, settings.idle_seconds)

    async def _make(self, options: Mapping[str, Any]) -> modal.Sandbox:
        with translated("a box cannot be made"):
            return await modal.Sandbox.create.aio(*entrypoint(self._settings.idle_seconds), **options)


VENDOR: Final = ModalVendor
