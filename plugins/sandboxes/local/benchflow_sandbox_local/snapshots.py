"""Capturing a box's files, and what they differ in from its image."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from benchflow_core.contracts.sandboxes import Change, ImageRef, Snapshot
from benchflow_core.errors import InfrastructureError
from benchflow_sandbox_local import leases
from benchflow_sandbox_local.engine import SNAPSHOTS, Engine, Layering, StartedBox

__all__ = ["capture"]

_MOST_REPOSITORIES: Final = 500
"""That a box makes anew: an agent cannot hold up its verification with them."""


async def capture(engine: Engine, box: StartedBox, image: ImageRef, name: str, *, keep: bool) -> Snapshot:
    """The box's programs stand still while its files are copied."""
    layer = f"{SNAPSHOTS}{secrets.token_hex(6)}"
    request = leases.LeaseRequest(name, dict(engine.context.labels), kind="image", keep=keep)
    lease = leases.write(layer.rpartition("/")[2], engine.state / layer, request)
    engine.snapshots[layer] = keep
    await box.channel.call("freeze")
    try:
        whose = None if keep else lease
        found = await engine.job("snapshot", lease=whose, box=box.id, layer=layer, mounts=box.mounts)
    except OSError as error:
        raise InfrastructureError(f"The box could not be captured: {error.strerror}.") from error
    finally:
        await box.channel.call("thaw")
    recipe = Layering.of(image.meta)
    changes = tuple(Change(*row) for row in found["changes"])
    new = sorted(_repositories(changes).difference(recipe.repositories))[:_MOST_REPOSITORIES]
    meta = {**image.meta, **Layering((layer, *recipe.layers), recipe.shown, (*recipe.repositories, *new)).meta()}
    captured = replace(image, ref=f"local:{layer}", digest=None, meta=meta)
    return Snapshot(name, captured, changes, int(found["size"]))


def _repositories(changes: Sequence[Change]) -> set[str]:
    """Where git's repositories that were made in the box keep their objects."""
    there = {change.path for change in changes if change.kind != "deleted"}
    folders = {path.removesuffix("/objects") for path in there if path.endswith("/objects")}
    return {f"{folder}/objects" for folder in folders if {f"{folder}/HEAD", f"{folder}/refs"} <= there}
