"""What of ours exists at E2B: boxes by their metadata, images by their names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from benchflow_boxkit.accounts import IMAGE_PREFIX, MARK, Account, image_lease
from e2b import AsyncSandbox, SandboxQuery
from e2b.api import encode_path_param
from e2b.api.client.api.templates import delete_templates_template_id, get_templates
from e2b.api.client.models import Template

from benchflow_core.contracts.sandboxes import Lease
from benchflow_sandbox_e2b.failures import refused, translated
from benchflow_sandbox_e2b.settings import E2bSettings

__all__ = ["E2BAccount", "account", "list_templates"]


class E2BAccount(Account):
    vendor = "e2b"

    def __init__(self, settings: E2bSettings) -> None:
        self._settings = settings

    async def boxes(self) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
        query = SandboxQuery(metadata={MARK: "1"})
        pages = AsyncSandbox.list(query=query, limit=100, **self._settings.connection)
        while pages.has_next:
            with translated("boxes cannot be listed"):
                found = await pages.next_items()
            for row in found:
                yield row.sandbox_id, row.metadata or {}

    async def images(self) -> AsyncIterator[Lease]:
        for found in await list_templates(self._settings):
            name = (found.names or found.aliases)[0]
            yield image_lease(found.template_id, name, found.created_at, found.last_spawned_at or None)

    async def remove_box(self, identity: str) -> None:
        with translated(f"box {identity} cannot be removed"):
            await AsyncSandbox.kill(identity, **self._settings.connection)

    async def remove_image(self, identity: str) -> None:
        what = f"the template {identity} cannot be removed"
        with translated(what):
            answer = await delete_templates_template_id.asyncio_detailed(
                encode_path_param(identity), client=self._settings.api_client()
            )
        if answer.status_code >= 300 and answer.status_code != 404:
            raise refused(what, answer)


def account(env: Mapping[str, str]) -> E2BAccount:
    return E2BAccount(E2bSettings.of(env))


async def list_templates(settings: E2bSettings) -> list[Template]:
    """Return the templates that are images of ours."""
    what = "templates cannot be listed"
    with translated(what):
        answer = await get_templates.asyncio_detailed(client=settings.api_client())
    if not isinstance(answer.parsed, list):
        raise refused(what, answer)
    return [found for found in answer.parsed if any(map(_ours, found.names + found.aliases))]


def _ours(name: str) -> bool:
    return name.rpartition("/")[2].startswith(IMAGE_PREFIX)
