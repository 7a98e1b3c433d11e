"""Images as E2B's templates: built once for equal content, one per size that boxes are asked for in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchflow_boxkit.failures import Missing
from benchflow_boxkit.images import SizedImages, build_failed, build_too_slow
from benchflow_boxkit.recipe import Recipe
from benchflow_boxkit.sizes import BoxSize
from e2b import AsyncTemplate
from e2b.api import encode_path_param
from e2b.api.client.api.templates import get_templates_template_id
from e2b.api.client.models import TemplateBuildStatus, TemplateWithBuilds
from e2b.exceptions import BuildException

from benchflow_core.contracts.sandboxes import Resources
from benchflow_sandbox_e2b.dockerfiles import template
from benchflow_sandbox_e2b.failures import refused, translated
from benchflow_sandbox_e2b.settings import E2bSettings
from benchflow_sandbox_e2b.stages import lowered

__all__ = ["E2BImages"]


class E2BImages(SizedImages):
    def __init__(self, settings: E2bSettings) -> None:
        super().__init__(settings.sizes.fit(Resources()))
        self._settings = settings

    async def find(self, recipe: Recipe) -> str | None:
        name = self.name(recipe.key)
        return name if await self.ready(name, recipe.timeout) else None

    async def build(self, recipe: Recipe, context: Path) -> str:
        name = self.name(recipe.key)
        await self.make(template(lowered(recipe), recipe.name, context), name, recipe)
        return name

    async def make(self, what: Any, name: str, recipe: Recipe) -> None:
        """Build a template of the default size."""
        await self._make(what, name, self._default, recipe.name, recipe.timeout)

    async def _resize(self, name: str, wanted: str, size: BoxSize) -> None:
        if not await self.ready(wanted, 600.0):
            await self._make(AsyncTemplate().from_template(name), wanted, size, wanted, 600.0)

    # --- requests --------------------------------------------------------------------------------------------------

    async def ready(self, name: str, timeout: float) -> bool:
        """Return whether a template can be used; wait for one that is being built."""
        pause = 0.5
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while True:
                    found = await self._get(name)
                    statuses = {build.status for build in found.builds} if found else set()
                    if TemplateBuildStatus.READY in statuses:
                        return True
                    if TemplateBuildStatus.BUILDING not in statuses:
                        return False
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.7, 5.0)
        return False

    async def _get(self, name: str) -> TemplateWithBuilds | None:
        what = f"the template {name} cannot be looked up"
        with translated(what):
            answer = await get_templates_template_id.asyncio_detailed(
                encode_path_param(name), client=self._settings.api_client()
            )
        if answer.status_code == 404:
            return None
        if not isinstance(answer.parsed, TemplateWithBuilds):
            raise refused(what, answer)
        return answer.parsed

    async def _make(self, what: Any, name: str, size: BoxSize, who: str, timeout: float) -> None:
        log: list[str] = []
        try:
            async with asyncio.timeout(timeout):
                await self._build(what, name, size, who, lambda entry: log.append(str(entry.message)))
        except TimeoutError as error:
            raise build_too_slow(who, "E2B", timeout) from error
        except _BuildRefused as error:
            raise build_failed(who, str(error), "\n".join(log)) from error.__cause__

    async def _build(self, what: Any, name: str, size: BoxSize, who: str, log: Callable[[Any], None]) -> None:
        with translated(f"{who} cannot be built"):
            try:
                await AsyncTemplate.build(
                    what,
                    name,
                    cpu_count=int(size.cpus),
                    memory_mb=size.memory,
                    min_free_disk_mb=size.disk,
                    on_build_logs=log,
                    **self._settings.connection,
                )
            except BuildException as error:
                if getattr(error, "status_code", None) is None:
                    raise _BuildRefused(str(error)) from error
                raise
            except ValueError as error:  # a COPY of what is not there
                raise _BuildRefused(str(error)) from error
            except Missing as error:
                raise _BuildRefused(str(error)) from error


class _BuildRefused(Exception):
    """Raised for a failure of the build itself, not of the request for it."""
