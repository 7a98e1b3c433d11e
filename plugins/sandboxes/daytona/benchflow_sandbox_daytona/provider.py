"""Daytona, as the box kit wants a vendor: images, boxes, and what was left behind."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchflow_boxkit.context import not_plain
from benchflow_boxkit.machines import made_or_gone
from benchflow_boxkit.recipe import Recipe
from daytona import AsyncSandbox, CreateSandboxFromSnapshotParams

from benchflow_core.contracts.sandboxes import NetworkPolicy, Resources, SandboxContext, StartRequest
from benchflow_core.errors import BenchflowError
from benchflow_sandbox_daytona.box import DaytonaMachine
from benchflow_sandbox_daytona.client import DaytonaClient
from benchflow_sandbox_daytona.failures import translated
from benchflow_sandbox_daytona.images import DaytonaImages
from benchflow_sandbox_daytona.leases import DaytonaAccount
from benchflow_sandbox_daytona.settings import DaytonaSettings

__all__ = ["VENDOR"]

_START_SECONDS: Final = 300.0


class DaytonaVendor:
    name = "daytona"
    shut_ports = (2280, 22220, 22222, 33333)
    """Daytona's daemon in every box: toolbox, SSH, web terminal, recordings. It asks for no key and is root here."""

    def __init__(self, context: SandboxContext) -> None:
        self._settings = DaytonaSettings.of(context.env or os.environ, context.options)
        self.creates_at_once, self.create_tries = self._settings.creates_at_once, self._settings.create_tries
        self._client = DaytonaClient(self._settings)
        self.account = DaytonaAccount(self._client)
        self._images = DaytonaImages(self._client, self._settings.sizes.fit(Resources()))

    async def find_image(self, recipe: Recipe) -> str | None:
        return await self._images.find(recipe)

    def image_notices(self, recipe: Recipe) -> tuple[str, ...]:
        said = "Daytona builds from plain files; links arrive as copies or not at all, and empty folders not"
        return (f"{recipe.name}: {said}: {lost}",) if (lost := not_plain(recipe.context)) else ()

    async def build_image(self, recipe: Recipe, context: Path) -> str:
        return await self._images.build(recipe, context)

    async def start(
        self, image: str, request: StartRequest, policy: NetworkPolicy, labels: Mapping[str, str]
    ) -> DaytonaMachine:
        size = self._settings.sizes.fit(request.resources)
        params = CreateSandboxFromSnapshotParams(
            snapshot=await self._images.sized(image, size),
            os_user="root",
            labels=dict(labels),
            auto_stop_interval=self._settings.auto_stop_minutes,
            auto_delete_interval=0,
            ttl_minutes=max(1, math.ceil(request.expires_after / 60)),
            network_block_all=policy.mode != "public",
        )
        sandbox = await made_or_gone(lambda: self._make(params), lambda made: made.delete())
        return DaytonaMachine(sandbox, size.notices, self._settings.auto_stop_minutes)

    async def _make(self, params: CreateSandboxFromSnapshotParams) -> AsyncSandbox:
        try:
            with translated("a box cannot be made"):
                return await self._client.sdk.create(params, timeout=_START_SECONDS)
        except BenchflowError as error:
            await self._remove_half(error)
            raise

    async def _remove_half(self, error: BaseException) -> None:
        """Delete the box that did not come up in time; the SDK's error names it."""
        identity = getattr(error.__cause__, "sandbox_id", None)
        if identity:
            with contextlib.suppress(Exception):
                await (await self._client.sdk.get(identity)).delete()


VENDOR: Final = DaytonaVendor
