"""The provider and its boxes: they answer, and the verifier finds a reward of 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchflow_core.contracts import BoxInfo, ExecResult, ImageRef, ImageRequest, Snapshot, StartRequest


class Provider:
    """Counts its boxes and holds nothing else."""

    def __init__(self) -> None:
        self._started = 0

    async def prepare(
        self, request: ImageRequest, layers: Sequence[Any] = (), runtimes: Sequence[Any] = ()
    ) -> ImageRef:
        return ImageRef("noop")

    async def start(self, image: ImageRef, request: StartRequest) -> Box:
        self._started += 1
        return Box(f"noop-{self._started}")

    async def forget(self, snapshot: Snapshot) -> None:
        """There are no snapshots."""

    async def close(self) -> None:
        """Nothing is open."""


class Box:
    """As much of `benchflow_core.contracts.Sandbox` as a rollout without a process needs."""

    def __init__(self, identity: str) -> None:
        self.info = BoxInfo(id=identity, workdir="/app")

    async def exec(self, argv: Sequence[str], **more: Any) -> ExecResult:
        return ExecResult(0, b"", b"")

    async def upload(self, source: Path, target: str, **more: Any) -> None:
        """Goes nowhere."""

    async def download(self, source: str, target: Path, **more: Any) -> None:
        if source != "/logs/verifier":
            raise FileNotFoundError(source)
        target.mkdir(parents=True, exist_ok=True)
        (target / "reward.txt").write_text("1\n")

    async def kill_all(self, **more: Any) -> None:
        """Nothing runs."""

    async def processes(self, **more: Any) -> list[int]:
        return []

    async def logs(self, **more: Any) -> bytes:
        return b""

    async def stop(self) -> None:
        """Nothing is there."""
