"""What of ours exists at Modal: boxes by their tags, and kept snapshots on this host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Final

import modal
from benchflow_boxkit import leases
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.snapshots import kept_leases, reap_kept

from benchflow_core.contracts.sandboxes import Lease
from benchflow_sandbox_modal.client import Client
from benchflow_sandbox_modal.failures import translated
from benchflow_sandbox_modal.settings import Settings

__all__ = ["MARK", "list_leases", "reap", "reap_dead"]

MARK: Final = "io.benchflow.box"
_AT_ONCE: Final = 8


async def boxes(client: Client) -> list[Lease]:
    """Modal lists sandboxes without their tags: one more request for each."""
    try:
        app = await client.app(create=False)
    except Missing:
        return []
    sdk = await client.sdk()
    with translated("boxes cannot be listed"):
        found = [box async for box in modal.Sandbox.list.aio(app_id=app.app_id, tags={MARK: "1"}, client=sdk)]
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(box: modal.Sandbox) -> Lease | None:
        async with slots:
            try:
                with translated(f"box {box.object_id} cannot be looked up"):
                    return leases.lease(f"box:{box.object_id}", await box.get_tags.aio())
            except Missing:
                return None

    return [lease for lease in await asyncio.gather(*map(one, found)) if lease is not None]


async def list_leases() -> AsyncIterator[Lease]:
    client = Client(Settings.of(os.environ))
    try:
        for lease in await boxes(client):
            yield lease
    finally:
        await client.close()
    for lease in kept_leases("modal"):
        yield lease


async def reap(lease: Lease) -> None:
    if reap_kept("modal", lease):
        return
    client = Client(Settings.of(os.environ))
    try:
        await _remove(client, lease)
    finally:
        await client.close()


async def _remove(client: Client, lease: Lease) -> None:
    identity = lease.id.partition(":")[2]
    sdk = await client.sdk()
    try:
        with translated(f"box {identity} cannot be removed"):
            box = await modal.Sandbox.from_id.aio(identity, client=sdk)
            await box.terminate.aio()
    except Missing:
        return


async def reap_dead(client: Client) -> None:
    """Boxes that killed runs left: here and now, rather than at the end of their term."""
    for lease in await boxes(client):
        if leases.is_dead(lease):
            await _remove(client, lease)
