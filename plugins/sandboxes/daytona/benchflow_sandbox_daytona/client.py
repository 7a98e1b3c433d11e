"""The vendor's clients for one account."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any

from daytona import AsyncDaytona, DaytonaConfig
from daytona_api_client_async import ApiClient, Configuration, ObjectStorageApi, SnapshotsApi
from engineio import async_client, base_client

from benchflow_sandbox_daytona.settings import DaytonaSettings

__all__ = ["DaytonaClient"]


def _leave_interrupts_alone() -> None:
    """Tell the SDK that it has taken over Ctrl-C already: otherwise it does, and an interrupt leaves boxes behind."""
    async_client.async_signal_handler_set = True
    if base_client.original_signal_handler is None:
        base_client.original_signal_handler = signal.getsignal(signal.SIGINT)


class DaytonaClient:
    """The SDK's clients, made at the first request because they want a running loop."""

    def __init__(self, settings: DaytonaSettings) -> None:
        self.settings = settings
        self._daytona: AsyncDaytona | None = None
        self._plain: ApiClient | None = None

    @property
    def sdk(self) -> AsyncDaytona:
        if self._daytona is None:
            settings = self.settings
            who: dict[str, Any] = (
                {"jwt_token": settings.key, "organization_id": settings.organization}
                if settings.organization
                else {"api_key": settings.key}
            )
            # The SDK's stream of events, without which it asks instead, prints its troubles for everybody to see.
            logging.getLogger("engineio.client").setLevel(logging.CRITICAL)
            _leave_interrupts_alone()
            config = DaytonaConfig(api_url=settings.place, target=settings.target, **who)
            self._daytona = AsyncDaytona(config)
        return self._daytona

    def _generated(self) -> ApiClient:
        """The SDK's own wire client: it makes snapshots and moves contexts without polling in between."""
        if self._plain is None:
            settings = self.settings
            self._plain = ApiClient(Configuration(host=settings.place))
            self._plain.default_headers["Authorization"] = f"Bearer {settings.key}"
            if settings.organization:
                self._plain.default_headers["X-Daytona-Organization-ID"] = settings.organization
        return self._plain

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._generated().default_headers)

    @property
    def snapshots(self) -> SnapshotsApi:
        return SnapshotsApi(self._generated())

    @property
    def storage(self) -> ObjectStorageApi:
        return ObjectStorageApi(self._generated())

    async def close(self) -> None:
        opened: list[Any] = [client for client in (self._daytona, self._plain) if client is not None]
        self._daytona = self._plain = None
        await asyncio.gather(*(client.close() for client in opened), return_exceptions=True)
