"""What of ours exists at Daytona: boxes by their labels, images by their names, kept snapshots on this host."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from benchflow_boxkit import leases
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.snapshots import kept_leases, reap_kept
from daytona import ListSandboxesQuery

from benchflow_core.contracts.sandboxes import Lease
from benchflow_sandbox_daytona.client import Client
from benchflow_sandbox_daytona.failures import translated
from benchflow_sandbox_daytona.images import PREFIX, Images
from benchflow_sandbox_daytona.settings import Settings
from benchflow_sandbox_daytona.sizes import Size

__all__ = ["MARK", "list_leases", "reap", "reap_dead"]

MARK: Final = "io.benchflow.box"
_MONTH: Final = 30 * 24 * 3600.0


async def boxes(client: Client) -> AsyncIterator[Lease]:
    with translated("boxes cannot be listed"):
        async for sandbox in client.sdk.list(ListSandboxesQuery(labels={MARK: "1"}, limit=100)):
            state = str(sandbox.state.value) if sandbox.state else ""
            if state not in ("destroyed", "destroying"):
                yield leases.lease(f"box:{sandbox.id}", sandbox.labels)


async def _images(client: Client) -> AsyncIterator[Lease]:
    page = 1
    while True:
        with translated("snapshots cannot be listed"):
            found = await client.snapshots.get_all_snapshots(page=page, limit=100, name=PREFIX)
        for snapshot in found.items:
            if snapshot.name.startswith(PREFIX):
                used = snapshot.last_used_at or snapshot.created_at
                yield Lease(
                    f"image:{snapshot.id}",
                    "image",
                    {"name": snapshot.name},
                    _time(snapshot.created_at),
                    expires_at=_time(used) + _MONTH,
                )
        if page >= found.total_pages:
            return
        page += 1


def _time(when: datetime) -> float:
    return when.timestamp()


async def list_leases() -> AsyncIterator[Lease]:
    client = Client(Settings.of(os.environ))
    try:
        async for lease in boxes(client):
            yield lease
        async for lease in _images(client):
            yield lease
    finally:
        await client.close()
    for lease in kept_leases("daytona"):
        yield lease


async def reap(lease: Lease) -> None:
    if reap_kept("daytona", lease):
        return
    client = Client(Settings.of(os.environ))
    try:
        await _remove(client, lease)
    finally:
        await client.close()


async def _remove(client: Client, lease: Lease) -> None:
    kind, _, identity = lease.id.partition(":")
    try:
        if kind == "image":
            await Images(client, Size(1, 1, 1)).remove(identity)
        else:
            with translated(f"box {identity} cannot be removed"):
                await (await client.sdk.get(identity)).delete()
    except Missing:
        return


async def reap_dead(client: Client) -> None:
    """Boxes that killed runs left: here and now, rather than at the end of their term."""
    for lease in [lease async for lease in boxes(client) if leases.is_dead(lease)]:
        await _remove(client, lease)
