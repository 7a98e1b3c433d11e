"""Labels on everything we make in an engine or at a vendor's: whose it is, for what, until when. And reading them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from benchflow_core.contracts.sandboxes import Lease

__all__ = ["CREATED", "EXPIRES", "KIND", "OWNER", "is_dead", "labels", "lease"]

OWNER: Final = "io.benchflow.owner"
KIND: Final = "io.benchflow.kind"
CREATED: Final = "io.benchflow.created"
EXPIRES: Final = "io.benchflow.expires"
_LABELS: Final = "io.benchflow.labels"
_CACHE_SECONDS: Final = 30 * 24 * 3600.0


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
        CREATED: f"{now:.0f}",
        EXPIRES: "" if expires_after is None else f"{now + expires_after:.0f}",
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


def lease(identity: str, found: Mapping[str, str]) -> Lease:
    """From the labels of something that has `OWNER` among them."""
    try:
        own = {str(k): str(v) for k, v in json.loads(found.get(_LABELS) or "{}").items()}
    except ValueError:
        own = {}
    expires = found.get(EXPIRES) or ""
    return Lease(
        id=identity,
        kind=found.get(KIND, "box"),
        labels=own,
        created_at=float(found.get(CREATED) or 0),
        expires_at=float(expires) if expires else None,
        owner_alive=_owner_alive(found.get(OWNER, "")),
    )


def is_dead(found: Lease) -> bool:
    """Left by a process that is gone, or beyond its term with an owner that cannot be asked."""
    if found.owner_alive is None:
        return found.expires_at is not None and found.expires_at < time.time()
    return not found.owner_alive
