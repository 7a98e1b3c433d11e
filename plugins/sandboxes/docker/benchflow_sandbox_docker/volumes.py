"""Volumes made once and mounted read-only in many boxes: the interpreter, and the layers of agents.

A volume cannot be renamed when it is ready, so an empty image with the volume's name in its labels is made last: where
that record is missing, whatever was begun does not count.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from benchflow_boxkit import leases
from benchflow_boxkit.locks import file_lock

from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.leases import VOLUME

__all__ = ["Volumes"]

_REPOSITORY: Final = "benchflow-layer"
_TERM: Final = 6 * 3600.0
Fill = Callable[[str], Awaitable[None]]


class Volumes:
    def __init__(self, engine: EngineClient, cache_dir: Path, labels: Mapping[str, str]) -> None:
        self._engine, self._locks, self._labels = engine, cache_dir / "docker" / "locks", labels
        self._known: dict[str, str] = {}
        self._making: dict[str, asyncio.Lock] = {}

    async def ensure(self, key: str, fill: Fill, *, nobodys: bool = False) -> str:
        """The name of the volume for `key`, filled by `fill` if there is none. Equal keys are made once.

        `nobodys`: it carries no label of this job, since every job uses it.
        """
        if key in self._known:
            return self._known[key]
        async with self._making.setdefault(key, asyncio.Lock()), file_lock(self._locks / f"layer-{key}"):
            name = (
                self._known.get(key)
                or await self._find(key)
                or await self._make(key, fill, {} if nobodys else self._labels)
            )
            self._known[key] = name
        return name

    async def was_pruned(self, key: str) -> bool:
        """Did somebody remove it since we last looked? An engine then mounts an empty one of that name."""
        name = self._known.get(key)
        if name is None or await self._ours(name):
            return False
        del self._known[key]
        await self._engine.remove_volume(name)
        return True

    async def _ours(self, name: str) -> bool:
        found = await self._engine.volume(name)
        return found is not None and leases.OWNER in (found.get("Labels") or {})

    async def _find(self, key: str) -> str | None:
        found = await self._engine.image(f"{_REPOSITORY}:{key}")
        name = ((found or {}).get("Config") or {}).get("Labels", {}).get(VOLUME) if found else None
        return name if name and await self._ours(name) else None

    async def _make(self, key: str, fill: Fill, labels: Mapping[str, str]) -> str:
        name = f"benchflow-{key}-{secrets.token_hex(4)}"
        try:
            # Until it is recorded it is ours alone, and goes with us.
            await self._engine.create_volume(name, leases.labels("volume", labels, expires_after=_TERM))
            await fill(name)
            marks = leases.labels("layer", labels, shared=True)
            await self._engine.record(_REPOSITORY, key, {**marks, VOLUME: name})
        except BaseException:
            await asyncio.shield(self._engine.remove_volume(name))
            raise
        return name
