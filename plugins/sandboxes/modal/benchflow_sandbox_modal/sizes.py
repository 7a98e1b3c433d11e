"""From what a task asks for to what Modal gives: parts of cores, megabytes, and GPUs by name."""

from __future__ import annotations

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import Resources
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_modal.settings import Settings

__all__ = ["Size", "fit"]

_LEAST_CPUS = 0.125
_LEAST_MEMORY = 128
_GPU = "T4"


@dataclass(frozen=True, slots=True)
class Size:
    cpus: float
    memory_mb: int
    gpu: str | None
    notices: tuple[str, ...]


def fit(wanted: Resources, settings: Settings) -> Size:
    if wanted.tpu:
        raise CapabilityMissing("Modal has no TPUs.", remedy="Use a sandbox with the capability tpu.")
    notices: list[str] = []
    cpus = _between("cpus", wanted.cpus, settings.cpus, _LEAST_CPUS, settings.max_cpus, "cores", notices)
    memory = _between(
        "memory_mb", wanted.memory_mb, settings.memory_mb, _LEAST_MEMORY, settings.max_memory_mb, "MB", notices
    )
    if wanted.storage_mb is not None:
        notices.append(
            f"storage_mb = {wanted.storage_mb}: Modal's sandboxes have no disk limit of their own; it is not applied."
        )
    return Size(cpus, int(memory), _gpu(wanted, notices), tuple(notices))


def _between(
    word: str, wanted: float | None, default: float, least: float, most: float, unit: str, notices: list[str]
) -> float:
    if wanted is None:
        return min(default, most)
    if wanted > most:
        notices.append(
            f"{word} = {wanted:g}: Modal gives one box at most {most:g} {unit}; it gets {most:g}. "
            f"A workspace with higher limits says so with --sandbox-option max_{word}=N."
        )
        return most
    if wanted < least:
        notices.append(f"{word} = {wanted:g}: Modal's smallest box has {least:g} {unit}; it gets that.")
        return least
    return wanted


def _gpu(wanted: Resources, notices: list[str]) -> str | None:
    if not wanted.gpus:
        return None
    kind = wanted.gpu_types[0] if wanted.gpu_types else _GPU
    if not wanted.gpu_types:
        notices.append(f"gpus = {wanted.gpus} of no named kind: the box gets {_GPU}.")
    elif len(wanted.gpu_types) > 1:
        notices.append(f"Modal's sandboxes take one kind of GPU: the box gets {kind}.")
    return f"{kind}:{wanted.gpus}"
