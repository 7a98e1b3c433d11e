"""Resource limits of a box by control groups: version 1 as root, version 2 as root or where delegated."""

from __future__ import annotations

import contextlib
import os
import uuid
from dataclasses import field
from pathlib import Path
from typing import Final

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import Resources
from benchflow_core.errors import CapabilityMissing

__all__ = ["Group", "Hierarchies", "find", "make"]

_CONTROLLERS: Final = {
    "memory": Capability.LIMIT_MEMORY,
    "cpu": Capability.LIMIT_CPU,
    "pids": Capability.LIMIT_PIDS,
}
_PERIOD: Final = 100_000
_MEGA: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where groups of ours can be made, by controller."""

    parents: dict[str, Path] = field(default_factory=dict)
    unified: bool = False

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(_CONTROLLERS[name] for name in self.parents)


@dataclass(frozen=True, slots=True)
class Group:
    """The groups of one box. Made before it starts; removed by the helper with it."""

    folders: list[str] = field(default_factory=list)
    events: dict[str, Path] = field(default_factory=dict)
    """By controller, where the kernel counts what it killed or refused."""
    notices: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """Return how often the memory limit has killed something, and the limit of processes refused one."""
        return {"memory": self._count("memory", "oom_kill"), "pids": self._count("pids", "max")}

    def _count(self, controller: str, word: str) -> int:
        if controller in self.events:
            with contextlib.suppress(OSError, ValueError):
                for line in self.events[controller].read_text().splitlines():
                    name, _, count = line.partition(" ")
                    if name == word:
                        return int(count)
        return 0


def find() -> Hierarchies:
    """Looks for the groups this process is in, and tries whether it may make others below."""
    mounts = _mounts()
    own: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines() if Path("/proc/self/cgroup").exists() else ():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    found = {}
    for name in _CONTROLLERS:
        if name in own and name in mounts:
            parent = Path(mounts[name] + own[name])
            if _can_make(parent):
                found[name] = parent
    if found or "" not in own or "cgroup2" not in mounts:
        return Hierarchies(found)
    return _unified(Path(mounts["cgroup2"]), own[""])


def _mounts() -> dict[str, str]:
    """Controller (or `cgroup2`) to mount point."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, target, kind, options, *_ = line.split()
            if kind == "cgroup2":
                found.setdefault("cgroup2", target)
            elif kind == "cgroup":
                for option in options.split(","):
                    found.setdefault(option, target)
    return found


def _unified(mount: Path, own: str) -> Hierarchies:
    """Below our own group where its controllers are passed on; as root also directly below the top."""
    for parent in (Path(f"{mount}{own}"), *([mount] if os.geteuid() == 0 else [])):
        with contextlib.suppress(OSError):
            passed_on = (parent / "cgroup.subtree_control").read_text().split()
            wanted = {name: parent for name in _CONTROLLERS if name in passed_on}
            if wanted and _can_make(parent):
                return Hierarchies(wanted, unified=True)
    return Hierarchies()


def _can_make(parent: Path) -> bool:
    trial = parent / f"benchflow-trial-{uuid.uuid4().hex[:8]}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError:
        return False
    return True


def make(hierarchies: Hierarchies, resources: Resources, box: str) -> Group:
    """The groups that hold a box to `resources`. What cannot be limited here is said, not ignored."""
    if resources.gpus or resources.tpu:
        raise CapabilityMissing("The embedded sandbox does not hand out GPUs or TPUs.", remedy="Use another sandbox.")
    settings = _settings(resources, hierarchies.unified)
    notices = []
    if resources.storage_mb is not None:
        notices.append("storage is not limited: the embedded sandbox cannot")
    folders: dict[Path, None] = {}
    counted = {"memory": "memory.events" if hierarchies.unified else "memory.oom_control", "pids": "pids.events"}
    events: dict[str, Path] = {}
    try:
        for controller, files in settings.items():
            if controller not in hierarchies.parents:
                notices.append(f"{controller} is not limited: this user may make no control group for it")
                continue
            folder = hierarchies.parents[controller] / f"benchflow-{box}"
            folder.mkdir(exist_ok=True)
            folders[folder] = None
            for name, value in files.items():
                with contextlib.suppress(FileNotFoundError):
                    (folder / name).write_text(value)
            if controller in counted:
                events[controller] = folder / counted[controller]
    except OSError as error:
        remove([str(folder) for folder in folders])
        raise CapabilityMissing(f"The limits asked for cannot be set: {error}.") from error
    return Group([str(folder) for folder in folders], events, tuple(notices))


def _settings(resources: Resources, unified: bool) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    if resources.memory_mb is not None:
        size = str(resources.memory_mb * _MEGA)
        found["memory"] = (
            {"memory.max": size, "memory.swap.max": "0", "memory.oom.group": "0"}
            if unified
            else {"memory.limit_in_bytes": size, "memory.memsw.limit_in_bytes": size}
        )
    if resources.cpus is not None:
        quota = max(1000, int(resources.cpus * _PERIOD))
        found["cpu"] = (
            {"cpu.max": f"{quota} {_PERIOD}"}
            if unified
            else {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": str(quota)}
        )
    if resources.pids is not None:
        found["pids"] = {"pids.max": str(resources.pids + 1)}  # the box's first process is ours
    return found


def remove(folders: list[str]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
