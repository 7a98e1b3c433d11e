"""What exists on disk, and whose it is: one small file per box or snapshot, found again after its owner was killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import Lease
from benchflow_core.errors import ConfigurationError
from benchflow_sandbox_local.helper import tree

__all__ = [
    "LeaseRequest",
    "folder",
    "left_behind",
    "list_leases",
    "reap",
    "reap_dead",
    "reap_file",
    "remove",
    "start_time",
    "write",
]


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    expires_after: float = 6 * 3600.0
    kind: str = "box"
    keep: bool = False
    """It is meant to outlive its owner."""


def folder() -> Path:
    """Where every provider of this user writes its leases, whatever its cache directory."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "benchflow")
    return _usable(home) / "sandbox-local" / "leases"


@cache
def _usable(wanted: Path) -> Path:
    """The folder itself, or one in the temporary directory for a user without a home."""
    with contextlib.suppress(OSError):
        wanted.mkdir(parents=True, exist_ok=True)
        if os.access(wanted, os.W_OK):
            return wanted
    other = Path(tempfile.gettempdir(), f"benchflow-{os.geteuid()}")
    other.mkdir(mode=0o700, exist_ok=True)
    if other.stat().st_uid != os.geteuid():
        raise ConfigurationError(
            f"{other} belongs to somebody else.", remedy="Set XDG_CACHE_HOME to a folder of yours."
        )
    return other


@cache
def _place() -> list[str]:
    """Which machine, since when it runs, and which of its process tables: where a process id means something."""
    found = [os.uname().nodename]
    for path in (Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")):
        try:
            found.append(str(path.readlink()) if path.is_symlink() else path.read_text().strip())
        except OSError:
            found.append("")
    return found


def start_time(pid: int) -> str:
    """When a process started, in the kernel's ticks: with the pid it names a process for good. Empty: not running."""
    if sys.platform != "linux":
        done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return done.stdout.strip()
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()[19]
    except (OSError, IndexError):
        return ""


_started = cache(start_time)
"""For this process, which is as old as it is."""


def write(name: str, path: Path, request: LeaseRequest) -> Path:
    lease = folder() / f"{name}.json"
    if not lease.parent.is_dir():
        lease.parent.mkdir(parents=True, exist_ok=True)
    now = time.time()
    data = {
        "id": name,
        "kind": request.kind,
        "name": request.name,
        "path": str(path),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
        "place": _place(),
        "labels": {"name": request.name, **request.labels},
        "created_at": now,
        "expires_at": None if request.keep else now + request.expires_after,
        "keep": request.keep,
    }
    making = f"{lease}.{os.getpid()}.new"
    with open(making, "w") as file:
        file.write(json.dumps(data))
    os.replace(making, lease)
    return lease


def remove(lease: Path) -> None:
    with contextlib.suppress(OSError):
        lease.unlink()


def _read_all() -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for path in sorted(folder().glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            data = json.loads(path.read_text())
            if not os.path.isdir(data["path"]) and (data["keep"] or _owner_alive(data) is False):
                remove(path)  # somebody deleted the whole cache
            else:
                found.append((path, data))
    return found


def _owner_alive(data: Mapping[str, Any]) -> bool | None:
    """`None`: it runs, or ran, where we cannot see it: in another container or on another machine."""
    theirs, ours = data.get("place") or ["", "", ""], _place()
    if theirs[0] == ours[0] and theirs[1] != ours[1]:
        return False  # the machine was started anew
    if theirs != ours:
        return None
    started = start_time(int(data["pid"]))
    return bool(started) and started == data["started"]


def _left_behind(data: Mapping[str, Any]) -> bool:
    alive = _owner_alive(data)
    expired = alive is None and (data["expires_at"] or 0) < time.time()
    return not data["keep"] and (alive is False or expired)


async def list_leases() -> AsyncIterator[Lease]:
    """Boxes and snapshots of every provider of this user."""
    for _, data in await asyncio.to_thread(_read_all):
        alive = None if data["keep"] else _owner_alive(data)  # what is kept is meant to outlive its owner
        yield Lease(data["id"], data["kind"], data["labels"], data["created_at"], data["expires_at"], alive)


async def reap(lease: Lease) -> None:
    """Remove what a lease stands for, whoever owns it: processes first, then files."""
    await asyncio.to_thread(reap_file, folder() / f"{lease.id}.json")


def reap_file(path: Path) -> None:
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError):
        return
    target = Path(data["path"])
    if data["kind"] == "box":
        _end_processes(data["id"])
    if target.parent.parent.name == "sandbox-local" and target.name == data["id"]:
        _remove_files(str(target))
    remove(path)


def _end_processes(box: str) -> None:
    """A process of the box is one that sees its root mounted; the first of them takes the others along."""
    mark = f"boxes/{box}/u/root"
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError):
                if mark in Path("/proc", name, "mountinfo").read_text(errors="replace"):
                    os.kill(int(name), signal.SIGKILL)


def _remove_files(path: str) -> None:
    try:
        tree.remove(path)
    except PermissionError:
        # Files of mapped ids: only a user namespace with the same map may delete them.
        from benchflow_sandbox_local.client import remove_as_mapped

        remove_as_mapped(path)


def left_behind() -> list[str]:
    """Boxes and snapshots whose owner was killed before it could remove them."""
    return [data["id"] for _, data in _read_all() if _left_behind(data)]


def reap_dead(state: Path) -> None:
    """Remove what killed runs left in this state directory."""
    for path, data in _read_all():
        if data["path"].startswith(f"{state}/") and _left_behind(data):
            with contextlib.suppress(OSError):
                reap_file(path)
    for name, oldest in (("trash", 60.0), ("boxes", 3600.0)):
        for left in (state / name).iterdir():
            with contextlib.suppress(OSError):
                unknown = name == "trash" or not (folder() / f"{left.name}.json").exists()
                if unknown and time.time() - left.stat().st_ctime > oldest:
                    _remove_files(str(left))
