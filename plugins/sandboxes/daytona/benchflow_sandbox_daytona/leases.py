"""What of ours exists at Daytona: boxes by their labels, images by their names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from benchflow_boxkit.accounts import IMAGE_PREFIX, MARK, Account, image_lease
from daytona import ListSandboxesQuery

from benchflow_core.contracts.sandboxes import Lease
from benchflow_sandbox_daytona.client import DaytonaClient
from benchflow_sandbox_daytona.failures import translated
from benchflow_sandbox_daytona.images import remove_snapshot
from benchflow_sandbox_daytona.settings import DaytonaSettings

__all__ = ["DaytonaAccount", "account"]


class DaytonaAccount(Account):
    vendor = "daytona"

    def __init__(self, client: DaytonaClient) -> None:
        self._client = client

    async def boxes(self) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
        with translated("boxes cannot be listed"):
            async for sandbox in self._client.sdk.list(ListSandboxesQuery(labels={MARK: "1"}, limit=100)):
                state = str(sandbox.state.value) if sandbox.state else ""
                if state not in ("destroyed", "destroying"):
                    yield sandbox.id, sandbox.labels

    async def images(self) -> AsyncIterator[Lease]:
        page, pages = 1, 1
        while page <= pages:
            with translated("snapshots cannot be listed"):
                found = await self._client.snapshots.get_all_snapshots(page=page, limit=100, name=IMAGE_PREFIX)
            for one in found.items:
                if one.name.startswith(IMAGE_PREFIX):
                    yield image_lease(one.id, one.name, one.created_at, one.last_used_at)
            page, pages = page + 1, int(found.total_pages)

    async def remove_box(self, identity: str) -> None:
        with translated(f"box {identity} cannot be removed"):
            await (await self._client.sdk.get(identity)).delete()

    async def remove_image(self, identity: str) -> None:
        await remove_snapshot(self._client, identity)

    async def close(self) -> None:
        await self._client.close()


def account(env: Mapping[str, str]) -> DaytonaAccount:
    return DaytonaAccount(DaytonaClient(DaytonaSettings.of(env)))
