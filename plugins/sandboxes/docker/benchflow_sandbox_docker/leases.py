"""Labels on everything we make in an engine: whose it is, for what, until when. And finding and removing it again."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.sandboxes import Lease
from benchflow_sandbox_docker.engine.api import Engine
from benchflow_sandbox_docker.engine.host import find
from benchflow_sandbox_docker.engine.http import EngineError

__all__ = ["KIND", "OWNER", "VOLUME", "labels", "list_leases", "reap", "reap_dead"]

OWNER: Final = "io.benchflow.owner"
KIND: Final = "io.benchflow.kind"
VOLUME: Final = "io.benchflow.volume"
_CREATED: Final = "io.benchflow.created"
_EXPIRES: Final = "io.benchflow.expires"
_LABELS: Final = "io.benchflow.labels"
_CACHE_SECONDS: Final = 30 * 24 * 3600.0
_REPLACED_SECONDS: Final = 6 * 3600.0


def labels(
    kind: str, mine: Mapping[str, str], *, expires_after: float | None = None, shared: bool = False
) -> dict[str, str]:
    """For a new object. `shared`: it outlives us and serves others, until it has not been made anew for a month."""
    if shared:
        expires_after = _CACHE_SECONDS
    now = time.time()
    return {
        OWNER: json.dumps([] if shared or expires_after is None else _self()),
        KIND: kind,
        _CREATED: f"{now:.0f}",
        _EXPIRES: "" if expires_after is None else f"{now + expires_after:.0f}",
        _LABELS: json.dumps(dict(mine), sort_keys=True),
    }


@cache
def _place() -> list[str]:
    """Which machine, which start of it, which process namespace."""
    parts = []
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        try:
            parts.append(Path(path).read_text().strip())
        except OSError:
            parts.append("")
    namespace = ""
    with contextlib.suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return [parts[0] or socket.gethostname(), parts[1], namespace]


def _started(pid: int) -> str:
    """When a process began, as the kernel counts; nothing for one that is not there."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    except OSError:
        return ""


def _self() -> list[str]:
    return [*_place(), str(os.getpid()), _started(os.getpid())]


def _owner_alive(text: str) -> bool | None:
    """`None`: it runs, or ran, where we cannot see it, or it is nobody's."""
    try:
        machine, boot, namespace, pid, started = json.loads(text)
    except ValueError:
        return None
    here = _place()
    if machine == here[0] and boot != here[1]:
        return False
    if [machine, boot, namespace] != here:
        return None
    return bool(started) and _started(int(pid)) == started


def _lease(identity: str, found: Mapping[str, str]) -> Lease:
    try:
        own = {str(k): str(v) for k, v in json.loads(found.get(_LABELS) or "{}").items()}
    except ValueError:
        own = {}
    expires = found.get(_EXPIRES) or ""
    return Lease(
        id=identity,
        kind=found.get(KIND, "box"),
        labels=own,
        created_at=float(found.get(_CREATED) or 0),
        expires_at=float(expires) if expires else None,
        owner_alive=_owner_alive(found.get(OWNER, "")),
    )


async def _all(engine: Engine) -> AsyncIterator[Lease]:
    for row in await engine.containers(OWNER):
        yield _lease(f"container:{row['Id']}", row.get("Labels") or {})
    for row in await engine.networks(OWNER):
        yield _lease(f"network:{row['Id']}", row.get("Labels") or {})
    recorded: dict[str, str] = {}
    for row in await engine.images(OWNER):
        found = dict(row.get("Labels") or {})
        if VOLUME in found:
            if not _named(row):  # another one took its place
                found[_EXPIRES] = f"{float(found.get(_CREATED) or 0) + _REPLACED_SECONDS:.0f}"
            recorded[found[VOLUME]] = found.get(_EXPIRES, "")
        yield _lease(f"image:{row['Id']}", found)
    for row in await engine.volumes(OWNER):
        found = dict(row.get("Labels") or {})
        if row["Name"] in recorded:  # complete: it lives as long as its record, whoever made it
            found |= {OWNER: "[]", _EXPIRES: recorded[row["Name"]]}
        yield _lease(f"volume:{row['Name']}", found)


def _named(image: Mapping[str, Any]) -> bool:
    return any(tag != "<none>:<none>" for tag in image.get("RepoTags") or ())


async def list_leases() -> AsyncIterator[Lease]:
    """Everything of ours in the engine that this environment points at."""
    async for lease in _all(Engine(find())):
        yield lease


async def reap(lease: Lease) -> None:
    await _remove(Engine(find()), lease)


async def _remove(engine: Engine, lease: Lease) -> None:
    what, _, identity = lease.id.partition(":")
    with contextlib.suppress(EngineError):
        if what == "container":
            await engine.remove(identity)
        elif what == "network":
            await engine.remove_network(identity)
        elif what == "image":
            await engine.remove_image(identity)
        elif what == "volume":
            await engine.remove_volume(identity)


async def reap_dead(engine: Engine) -> list[Any]:
    """Remove what killed runs left. What is shared stays until its term is over."""
    dead = [
        lease
        async for lease in _all(engine)
        if lease.owner_alive is False
        or (lease.owner_alive is None and lease.expires_at is not None and lease.expires_at < time.time())
    ]
    for lease in dead:
        await _remove(engine, lease)
    return [lease.id for lease in dead]
