"""What images have in common at vendors that keep one per size, and how a failed build is reported."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from benchflow_boxkit.accounts import IMAGE_PREFIX
from benchflow_boxkit.sizes import BoxSize
from benchflow_core.errors import BuildError

__all__ = ["SizedImages", "build_failed", "build_too_slow"]


class SizedImages(ABC):
    """Images by name: the key of their content, then the size. Another size is made when it is first asked for."""

    def __init__(self, default: BoxSize) -> None:
        self._default = default
        self._sized: dict[str, asyncio.Task[None]] = {}

    def name(self, key: str) -> str:
        """Name an image of the default size."""
        return f"{IMAGE_PREFIX}{key}-{self._default.suffix}"

    async def sized(self, name: str, size: BoxSize) -> str:
        """Return the name of the same image for boxes of this size, once it is there."""
        if size.suffix == self._default.suffix:
            return name
        wanted = f"{name.rpartition('-')[0]}-{size.suffix}"
        known = self._sized.get(wanted)
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            self._sized[wanted] = known = asyncio.ensure_future(self._resize(name, wanted, size))
        await asyncio.shield(known)
        return wanted

    @abstractmethod
    async def _resize(self, name: str, wanted: str, size: BoxSize) -> None:
        """Make the image `wanted` from `name`, unless it is there."""


def build_failed(who: str, reason: str, log: str) -> BuildError:
    """Describe a failed build in one line: the layer that failed, if it was one, and the end of the log."""
    lines = [line for line in log.strip().splitlines() if line.strip()]
    layer = next((line for line in reversed(lines) if line.startswith("Layer ")), "")
    tail = " | ".join(lines[-6:])[-700:]
    text = f"{layer} {who}: {reason.rstrip('.')}.".strip()
    return BuildError(f"{text} The log ends: {tail}" if tail else text, details={"log": log[-65536:] or reason})


def build_too_slow(who: str, vendor: str, timeout: float) -> BuildError:
    return BuildError(f"{who}: {vendor} took longer than {timeout:.0f} s to build it.")
