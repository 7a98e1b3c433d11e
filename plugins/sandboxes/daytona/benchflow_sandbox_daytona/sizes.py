"""From what a task asks for to what Daytona sells: whole cores and gigabytes, up to what one box may have."""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import Resources
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_daytona.settings import Settings

__all__ = ["Size", "fit"]


@dataclass(frozen=True, slots=True)
class Size:
    cpu: int
    memory: int
    disk: int
    gpu: int = 0
    gpu_types: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """Of the snapshot that has this size."""
        gpu = f"g{self.gpu}{'-'.join(self.gpu_types).lower()}" if self.gpu else ""
        return f"c{self.cpu}m{self.memory}d{self.disk}{gpu}"


def fit(wanted: Resources, settings: Settings) -> Size:
    if wanted.tpu:
        raise CapabilityMissing("Daytona has no TPUs.", remedy="Use a sandbox with the capability tpu.")
    notices: list[str] = []
    asked = {
        "cpu": ("cpus", wanted.cpus, wanted.cpus, "cores"),
        "memory": ("memory_mb", wanted.memory_mb, _gigabytes(wanted.memory_mb), "GB of memory"),
        "disk": ("storage_mb", wanted.storage_mb, _gigabytes(wanted.storage_mb), "GB of disk"),
    }
    found: Mapping[str, int] = {
        name: _one(name, *row, settings, notices) if row[1] is not None else settings.default[name]
        for name, row in asked.items()
    }
    return Size(found["cpu"], found["memory"], found["disk"], wanted.gpus, tuple(wanted.gpu_types), tuple(notices))


def _gigabytes(megabytes: int | None) -> float | None:
    return None if megabytes is None else megabytes / 1024


def _one(
    name: str, word: str, raw: float | None, wanted: float | None, unit: str, settings: Settings, notices: list[str]
) -> int:
    assert raw is not None and wanted is not None
    whole, most = max(1, math.ceil(wanted)), settings.most[name]
    if whole > most:
        notices.append(
            f"{word} = {raw:g}: Daytona gives one box at most {most} {unit}; it gets {most}. "
            f"An organization with higher limits says so with --sandbox-option max_{_option(name)}=N."
        )
        return most
    if whole != wanted:
        notices.append(f"{word} = {raw:g}: Daytona counts in whole {unit}; the box gets {whole}.")
    return whole


def _option(name: str) -> str:
    return {"cpu": "cpus", "memory": "memory_gb", "disk": "disk_gb"}[name]
