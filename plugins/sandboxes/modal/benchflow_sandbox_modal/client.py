"""The vendor's client for one account, and the app that our boxes belong to."""

from __future__ import annotations

import asyncio
import contextlib
import os

import modal

from benchflow_sandbox_modal.failures import translated
from benchflow_sandbox_modal.settings import ModalSettings

__all__ = ["ModalClient"]


class ModalClient:
    """The SDK's client, made at the first request, once for all that ask at the same time."""

    def __init__(self, settings: ModalSettings) -> None:
        self.settings = settings
        self._opening: asyncio.Lock = asyncio.Lock()
        self._client: modal.Client | None = None
        self._app: modal.App | None = None

    async def sdk(self) -> modal.Client:
        async with self._opening:
            if self._client is None:
                # The SDK would wait by itself, each request alone; the job holds all of them back instead.
                os.environ.setdefault("MODAL_MAX_THROTTLE_WAIT", "0")
                with translated("the account does not answer"):
                    self._client = await modal.Client.from_credentials.aio(self.settings.token, self.settings.secret)
            return self._client

    async def app(self, *, create: bool = True) -> modal.App:
        """Return the app. Raises `Missing` where there is none and `create` is false."""
        client = await self.sdk()
        async with self._opening:
            if self._app is None:
                with translated(f"the app {self.settings.app} cannot be used"):
                    self._app = await modal.App.lookup.aio(
                        self.settings.app,
                        client=client,
                        environment_name=self.settings.environment,
                        create_if_missing=create,
                    )
            return self._app

    async def close(self) -> None:
        client, self._client, self._app = self._client, None, None
        if client is not None:
            with contextlib.suppress(Exception):
                await client.close.aio()
