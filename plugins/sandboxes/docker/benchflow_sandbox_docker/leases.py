"""Finding everything of ours in an engine by its labels, and removing it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from benchflow_boxkit.leases import CREATED, EXPIRES, OWNER, is_dead, lease

from benchflow_core.contracts.sandboxes import Lease
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.host import find
from benchflow_sandbox_docker.engine.http import EngineError

__all__ = ["VOLUME", "list_leases", "reap", "reap_dead"]

VOLUME: Final = "io.benchflow.volume"
_REPLACED_SECONDS: Final = 6 * 3600.0


async def _all(engine: EngineClient) -> AsyncIterator[Lease]:
    for row in await engine.containers(OWNER):
        yield lease(f"container:{row['Id']}", row.get("Labels") or {})
    for row in await engine.networks(OWNER):
        yield lease(f"network:{row['Id']}", row.get("Labels") or {})
    recorded: dict[str, str] = {}
    for row in await engine.images(OWNER):
        found = dict(row.get("Labels") or {})
        if VOLUME in found:
            if not _named(row):  # another one took its place
                found[EXPIRES] = f"{float(found.get(CREATED) or 0) + _REPLACED_SECONDS:.0f}"
            recorded[found[VOLUME]] = found.get(EXPIRES, "")
        yield lease(f"image:{row['Id']}", found)
    for row in await engine.volumes(OWNER):
        found = dict(row.get("Labels") or {})
        if row["Name"] in recorded:  # complete: it lives as long as its record, whoever made it
            found |= {OWNER: "[]", EXPIRES: recorded[row["Name"]]}
        yield lease(f"volume:{row['Name']}", found)


def _named(image: Mapping[str, Any]) -> bool:
    return any(tag != "<none>:<none>" for tag in image.get("RepoTags") or ())


async def list_leases() -> AsyncIterator[Lease]:
    """Everything of ours in the engine that this environment points at."""
    async for found in _all(EngineClient(find())):
        yield found


async def reap(found: Lease) -> None:
    await _remove(EngineClient(find()), found)


async def _remove(engine: EngineClient, found: Lease) -> None:
    what, _, identity = found.id.partition(":")
    with contextlib.suppress(EngineError):
        if what == "container":
            await engine.remove(identity)
        elif what == "network":
            await engine.remove_network(identity)
        elif what == "image":
            await engine.remove_image(identity)
        elif what == "volume":
            await engine.remove_volume(identity)


async def reap_dead(engine: EngineClient) -> list[str]:
    """Remove what killed runs left. What is shared stays until its term is over."""
    dead = [found async for found in _all(engine) if is_dead(found)]
    for found in dead:
        await _remove(engine, found)
    return [found.id for found in dead]
