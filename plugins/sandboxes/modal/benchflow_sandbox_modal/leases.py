"""What of ours exists at Modal: boxes by their tags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

import modal
from benchflow_boxkit.accounts import MARK, Account
from benchflow_boxkit.failures import Missing

from benchflow_sandbox_modal.client import ModalClient
from benchflow_sandbox_modal.failures import translated
from benchflow_sandbox_modal.settings import ModalSettings

__all__ = ["ModalAccount", "account"]

_AT_ONCE: Final = 8


class ModalAccount(Account):
    vendor = "modal"

    def __init__(self, client: ModalClient) -> None:
        self._client = client

    async def boxes(self) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
        """Modal lists sandboxes without their tags: one more request for each."""
        try:
            app = await self._client.app(create=False)
        except Missing:
            return
        sdk = await self._client.sdk()
        with translated("boxes cannot be listed"):
            found = [box async for box in modal.Sandbox.list.aio(app_id=app.app_id, tags={MARK: "1"}, client=sdk)]
        slots = asyncio.Semaphore(_AT_ONCE)

        async def tags(box: modal.Sandbox) -> Mapping[str, str] | None:
            async with slots:
                try:
                    with translated(f"box {box.object_id} cannot be looked up"):
                        return dict(await box.get_tags.aio())
                except Missing:
                    return None

        for box, labels in zip(found, await asyncio.gather(*map(tags, found)), strict=True):
            if labels is not None:
                yield box.object_id, labels

    async def remove_box(self, identity: str) -> None:
        sdk = await self._client.sdk()
        with translated(f"box {identity} cannot be removed"):
            await (await modal.Sandbox.from_id.aio(identity, client=sdk)).terminate.aio()

    async def close(self) -> None:
        await self._client.close()


def account(env: Mapping[str, str]) -> ModalAccount:
    return ModalAccount(ModalClient(ModalSettings.of(env)))
