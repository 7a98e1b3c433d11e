"""What of ours exists at E2B: boxes by their metadata, images by their names, kept snapshots on this host."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Final

from benchflow_boxkit import leases
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.snapshots import kept_leases, reap_kept
from e2b import AsyncSandbox, SandboxQuery

from benchflow_core.contracts.sandboxes import Lease
from benchflow_sandbox_e2b.failures import translated
from benchflow_sandbox_e2b.images import Images
from benchflow_sandbox_e2b.settings import Settings
from benchflow_sandbox_e2b.sizes import Size

__all__ = ["MARK", "list_leases", "reap", "reap_dead"]

MARK: Final = "io.benchflow.box"
_MONTH: Final = 30 * 24 * 3600.0


async def _boxes(settings: Settings) -> AsyncIterator[Lease]:
    pages = AsyncSandbox.list(query=SandboxQuery(metadata={MARK: "1"}), limit=100, **settings.connection)
    while pages.has_next:
        with translated("boxes cannot be listed"):
            found = await pages.next_items()
        for row in found:
            yield leases.lease(f"box:{row.sandbox_id}", row.metadata or {})


def _images(settings: Settings) -> Images:
    return Images(settings, Size(1, 512))


async def list_leases() -> AsyncIterator[Lease]:
    settings = Settings.of(os.environ)
    async for lease in _boxes(settings):
        yield lease
    for found in await _images(settings).all():
        made = found.created_at.timestamp()
        used = found.last_spawned_at.timestamp() if found.last_spawned_at else made
        name = (found.names or found.aliases)[0]
        yield Lease(f"image:{found.template_id}", "image", {"name": name}, made, expires_at=used + _MONTH)
    for lease in kept_leases("e2b"):
        yield lease


async def reap(lease: Lease) -> None:
    if not reap_kept("e2b", lease):
        await _remove(Settings.of(os.environ), lease)


async def _remove(settings: Settings, lease: Lease) -> None:
    kind, _, identity = lease.id.partition(":")
    try:
        if kind == "image":
            await _images(settings).remove(identity)
        else:
            with translated(f"box {identity} cannot be removed"):
                await AsyncSandbox.kill(identity, **settings.connection)
    except Missing:
        return


async def reap_dead(settings: Settings) -> None:
    """Boxes that killed runs left: here and now, rather than at the end of their term."""
    for lease in [lease async for lease in _boxes(settings) if leases.is_dead(lease)]:
        await _remove(settings, lease)
