"""E2B, as the box kit wants a vendor: images, boxes, and what was left behind."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit.accounts import MARK
from benchflow_boxkit.leases import labels as lease_labels
from benchflow_boxkit.machines import made_or_gone
from benchflow_boxkit.pacing import Pace
from benchflow_boxkit.recipe import Recipe
from e2b import AsyncSandbox

from benchflow_core.contracts.sandboxes import NetworkPolicy, Resources, SandboxContext, StartRequest
from benchflow_sandbox_e2b.box import E2BMachine
from benchflow_sandbox_e2b.copying import StageCopier
from benchflow_sandbox_e2b.dockerfiles import notices
from benchflow_sandbox_e2b.failures import translated
from benchflow_sandbox_e2b.images import E2BImages
from benchflow_sandbox_e2b.leases import E2BAccount
from benchflow_sandbox_e2b.settings import E2bSettings

__all__ = ["VENDOR"]

_COPY_TERM: Final = 3600.0


class E2BVendor:
    name = "e2b"

    def __init__(self, context: SandboxContext) -> None:
        self._settings = E2bSettings.of(context.env or os.environ, context.options)
        self.creates_at_once, self.create_tries = self._settings.creates_at_once, self._settings.create_tries
        self.account = E2BAccount(self._settings)
        self._images = E2BImages(self._settings)
        self._labels = context.labels
        pace = Pace(self.creates_at_once, tries=self.create_tries)
        self._copier = StageCopier(self._images, self._look_into, pace, context.cache_dir / self.name / "locks")

    async def find_image(self, recipe: Recipe) -> str | None:
        return await self._images.find(recipe)

    def image_notices(self, recipe: Recipe) -> tuple[str, ...]:
        return notices(recipe)

    async def build_image(self, recipe: Recipe, context: Path) -> str:
        await self._copier.copy_all(recipe, context)
        return await self._images.build(recipe, context)

    async def _look_into(self, template: str) -> E2BMachine:
        """Start a box from which files are copied."""
        request = StartRequest(name="copy-from", resources=Resources(), expires_after=_COPY_TERM)
        marks = {MARK: "1", **lease_labels("box", self._labels, expires_after=request.expires_after)}
        return await self.start(template, request, NetworkPolicy("none"), marks)

    async def start(
        self, image: str, request: StartRequest, policy: NetworkPolicy, labels: Mapping[str, str]
    ) -> E2BMachine:
        size = self._settings.sizes.fit(request.resources)
        keep = self._settings.keep_seconds
        asked: dict[str, Any] = {
            "template": await self._images.sized(image, size),
            "timeout": max(1, int(min(keep, request.expires_after))),
            "metadata": dict(labels),
            "lifecycle": {"on_timeout": "kill"},
            "allow_internet_access": policy.mode == "public",
            "idempotency_key": str(uuid.uuid4()),
        }
        sandbox = await made_or_gone(lambda: self._make(asked), lambda made: made.kill())
        return E2BMachine(sandbox, size.notices, keep, time.time() + request.expires_after)

    async def _make(self, asked: dict[str, Any]) -> AsyncSandbox:
        """Ask for a box. The SDK first waits and tries again itself; only then does the box kit's pace."""
        with translated("a box cannot be made"):
            return await AsyncSandbox.create(**asked, **self._settings.connection)


VENDOR: Final = E2BVendor
