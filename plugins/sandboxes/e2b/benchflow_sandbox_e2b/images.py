"""Images as E2B's templates: built once for equal content, one per size that boxes are asked for in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit.failures import Missing
from benchflow_boxkit.recipe import Recipe
from e2b import AsyncTemplate
from e2b.api import encode_path_param
from e2b.api.client.api.templates import delete_templates_template_id, get_templates, get_templates_template_id
from e2b.api.client.models import Template, TemplateBuildStatus, TemplateWithBuilds
from e2b.api.client_async import get_api_client
from e2b.connection_config import ConnectionConfig
from e2b.exceptions import BuildException

from benchflow_core.errors import BuildError
from benchflow_sandbox_e2b.dockerfiles import template
from benchflow_sandbox_e2b.failures import refusal, translated
from benchflow_sandbox_e2b.settings import Settings
from benchflow_sandbox_e2b.sizes import Size
from benchflow_sandbox_e2b.stages import lowered

__all__ = ["PREFIX", "Images"]

PREFIX: Final = "benchflow-"


class Images:
    def __init__(self, settings: Settings, default: Size) -> None:
        self._settings, self._default = settings, default
        self._sized: dict[str, asyncio.Task[str]] = {}

    async def find(self, recipe: Recipe) -> str | None:
        name = self.name(recipe.key)
        return name if await self.ready(name, recipe.timeout) else None

    async def build(self, recipe: Recipe, context: Path) -> str:
        name = self.name(recipe.key)
        await self.make(template(lowered(recipe), recipe.name, context), name, recipe)
        return name

    async def make(self, what: Any, name: str, recipe: Recipe) -> None:
        """A template of the default size."""
        await self._make(what, name, self._default, recipe.name, recipe.timeout)

    async def sized(self, name: str, size: Size) -> str:
        """The template with this size: on top of the one that is there, made when it is first asked for."""
        if size.suffix == self._default.suffix:
            return name
        wanted = f"{name.rpartition('-')[0]}-{size.suffix}"
        known = self._sized.get(wanted)
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            self._sized[wanted] = known = asyncio.ensure_future(self._resize(name, wanted, size))
        return await asyncio.shield(known)

    async def _resize(self, name: str, wanted: str, size: Size) -> str:
        if not await self.ready(wanted, 600.0):
            await self._make(AsyncTemplate().from_template(name), wanted, size, wanted, 600.0)
        return wanted

    def name(self, key: str) -> str:
        return f"{PREFIX}{key}-{self._default.suffix}"

    # --- requests --------------------------------------------------------------------------------------------------

    def _client(self) -> Any:
        return get_api_client(ConnectionConfig(**self._settings.connection))

    async def ready(self, name: str, timeout: float) -> bool:
        """Whether it can be used; one that somebody is building is waited for."""
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
            answer = await get_templates_template_id.asyncio_detailed(encode_path_param(name), client=self._client())
        if answer.status_code == 404:
            return None
        if not isinstance(answer.parsed, TemplateWithBuilds):
            raise _refused(what, answer)
        return answer.parsed

    async def all(self) -> list[Template]:
        """Of ours."""
        what = "templates cannot be listed"
        with translated(what):
            answer = await get_templates.asyncio_detailed(client=self._client())
        if not isinstance(answer.parsed, list):
            raise _refused(what, answer)
        return [found for found in answer.parsed if any(_ours(name) for name in found.names + found.aliases)]

    async def remove(self, identity: str) -> None:
        what = f"the template {identity} cannot be removed"
        with translated(what):
            answer = await delete_templates_template_id.asyncio_detailed(
                encode_path_param(identity), client=self._client()
            )
        if answer.status_code >= 300 and answer.status_code != 404:
            raise _refused(what, answer)

    async def _make(self, what: Any, name: str, size: Size, who: str, timeout: float) -> None:
        log: list[str] = []
        try:
            async with asyncio.timeout(timeout):
                await self._build(what, name, size, who, lambda entry: log.append(str(entry.message)))
        except TimeoutError as error:
            raise BuildError(f"{who}: E2B took longer than {timeout:.0f} s to build it.") from error
        except _Failed as error:
            raise _failed(who, str(error), log) from error.__cause__

    async def _build(self, what: Any, name: str, size: Size, who: str, log: Callable[[Any], None]) -> None:
        with translated(f"{who} cannot be built"):
            try:
                await AsyncTemplate.build(
                    what,
                    name,
                    cpu_count=size.cpu,
                    memory_mb=size.memory,
                    min_free_disk_mb=size.disk,
                    on_build_logs=log,
                    **self._settings.connection,
                )
            except BuildException as error:
                if getattr(error, "status_code", None) is None:
                    raise _Failed(str(error)) from error
                raise
            except ValueError as error:  # a COPY of what is not there
                raise _Failed(str(error)) from error
            except Missing as error:
                raise _Failed(str(error)) from error


class _Failed(Exception):
    """The build itself, not the way to it."""


def _ours(name: str) -> bool:
    return name.rpartition("/")[2].startswith(PREFIX)


def _refused(what: str, answer: Any) -> Exception:
    message = getattr(answer.parsed, "message", "") or f"status {int(answer.status_code)}"
    after = str(answer.headers.get("Retry-After") or "")
    return refusal(what, int(answer.status_code), message, float(after) if after.isdigit() else 0.0)


def _failed(who: str, reason: str, log: list[str]) -> BuildError:
    lines = [line for text in log for line in text.splitlines() if line.strip()]
    layer = next((line for line in reversed(lines) if line.startswith("Layer ")), "")
    tail = " | ".join(lines[-6:])[-700:]
    text = f"{layer} {who}: {reason.rstrip('.')}".strip()
    details = {"log": "\n".join(lines)[-8000:] or reason}
    return BuildError(f"{text}. The log ends: {tail}" if tail else f"{text}.", details=details)
