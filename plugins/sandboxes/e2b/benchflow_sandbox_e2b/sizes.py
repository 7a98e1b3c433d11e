"""From what a task asks for to what E2B sells: whole cores and even megabytes, up to what one box may have."""

from __future__ import annotations

import math

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import Resources
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_e2b.settings import LEAST_MB, Settings

__all__ = ["Size", "fit"]


@dataclass(frozen=True, slots=True)
class Size:
    cpu: int
    memory: int
    disk: int | None = None
    """Free megabytes that are wanted; `None` leaves it to the team's default."""
    notices: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """Of the template that has this size."""
        return f"c{self.cpu}m{self.memory}" + (f"d{self.disk}" if self.disk else "")


def fit(wanted: Resources, settings: Settings) -> Size:
    if wanted.tpu or wanted.gpus:
        raise CapabilityMissing("E2B has no GPUs or TPUs.", remedy="Use a sandbox with the capability gpu.")
    notices: list[str] = []
    cpu, memory, disk = settings.default["cpu"], settings.default["memory"], None
    if wanted.cpus is not None:
        cpu = _most("cpus", wanted.cpus, max(1, math.ceil(wanted.cpus)), settings.most["cpu"], "cores", notices)
        if cpu > wanted.cpus:
            notices.append(f"cpus = {wanted.cpus:g}: E2B counts in whole cores; the box gets {cpu}.")
    if wanted.memory_mb is not None:
        even = max(LEAST_MB, wanted.memory_mb + wanted.memory_mb % 2)
        memory = _most("memory_mb", wanted.memory_mb, even, settings.most["memory"], "MB of memory", notices)
        if memory > wanted.memory_mb:
            notices.append(
                f"memory_mb = {wanted.memory_mb}: E2B gives even numbers from {LEAST_MB}; the box gets {memory}."
            )
    if wanted.storage_mb is not None:
        most = settings.most["disk"]
        disk = _most("storage_mb", wanted.storage_mb, wanted.storage_mb, most, "MB of free disk", notices)
    return Size(cpu, memory, disk, tuple(notices))


def _most(word: str, raw: float, wanted: int, most: int, unit: str, notices: list[str]) -> int:
    if wanted <= most:
        return wanted
    option = {"cpus": "max_cpus", "memory_mb": "max_memory_mb", "storage_mb": "max_disk_mb"}[word]
    notices.append(
        f"{word} = {raw:g}: E2B gives one box at most {most} {unit}; it gets {most}. "
        f"A team with higher limits says so with --sandbox-option {option}=N."
    )
    return most
