"""The box of a compose task: every service is a box of its own, reached through `service=`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from benchflow_boxkit.network import Connection

from benchflow_core.contracts.sandboxes import (
    AccessView,
    BoxInfo,
    DownloadLimits,
    ExecResult,
    HostEndpoint,
    NetworkPolicy,
    Process,
    Snapshot,
)
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_docker.box import DockerSandbox
from benchflow_sandbox_docker.compose.model import MAIN
from benchflow_sandbox_docker.compose.program import ServiceProgram

__all__ = ["ComposeSandbox", "Surroundings"]


class Surroundings(Protocol):
    """What the services share, and what has to go after them."""

    @property
    def internal(self) -> bool:
        """Is there no way out at all?"""

    @property
    def beside(self) -> str | None:
        """What the services beside `main` are found by, where there are any."""

    async def remove(self) -> None: ...


class ComposeSandbox:
    def __init__(
        self, around: Surroundings, carried: Mapping[str, Any], forget: Callable[[ComposeSandbox], None]
    ) -> None:
        """`carried`: the compose file and what belongs to it, as an image reference has it."""
        self.around, self._carried, self._forget = around, carried, forget
        self.boxes: dict[str, DockerSandbox] = {}
        self.programs: dict[str, ServiceProgram] = {}
        self._stopping: asyncio.Task[None] | None = None

    def _of(self, service: str) -> DockerSandbox:
        if service not in self.boxes:
            raise CapabilityMissing(
                f"The task has no service '{service}' that runs.", remedy=f"There are: {', '.join(sorted(self.boxes))}."
            )
        return self.boxes[service]

    @property
    def info(self) -> BoxInfo:
        return self.boxes[MAIN].info

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
        stdin: bytes | None = None,
        service: str = MAIN,
        view: AccessView | None = None,
        max_output: int = 16 * 1024 * 1024,
    ) -> ExecResult:
        return await self._of(service).exec(
            argv, cwd=cwd, env=env, user=user, timeout=timeout, stdin=stdin, view=view, max_output=max_output
        )

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        service: str = MAIN,
        view: AccessView | None = None,
    ) -> Process:
        return await self._of(service).spawn(argv, cwd=cwd, env=env, user=user, view=view)

    async def upload(
        self, source: Path, target: str, *, user: str | None = None, mode: int | None = None, service: str = MAIN
    ) -> None:
        await self._of(service).upload(source, target, user=user, mode=mode)

    async def download(
        self, source: str, target: Path, *, limits: DownloadLimits | None = None, service: str = MAIN
    ) -> None:
        await self._of(service).download(source, target, limits=limits)

    async def processes(self, *, service: str = MAIN) -> list[int]:
        return await self._of(service).processes()

    async def kill_all(self, *, service: str = MAIN) -> None:
        await self._of(service).kill_all()

    async def snapshot(self, name: str, *, keep: bool = False) -> Snapshot:
        """Of `main`, its volumes and tmpfs. A box on it reaches the other services as they are, while they live."""
        if keep and self.around.beside:
            raise CapabilityMissing("A state that is kept holds one container; this task has several services.")
        taken = await self.boxes[MAIN].snapshot(name, keep=keep)
        carried = {**self._carried, "captured": True, "beside": self.around.beside}
        return replace(taken, image=replace(taken.image, meta={**taken.image.meta, "compose": carried}))

    async def restore(self, snapshot: Snapshot) -> None:
        if self.around.beside:
            raise CapabilityMissing("One container can be put back; this task has several services.")
        await self.boxes[MAIN].restore(snapshot)

    async def set_network(self, policy: NetworkPolicy) -> None:
        """For every service: what one of them may reach, the agent reaches through it."""
        if policy.mode == "public" and self.around.internal:
            raise CapabilityMissing(
                "The services of this task were started without a way out, which cannot be made now."
            )
        await asyncio.gather(*(box.set_network(policy) for box in self.boxes.values()))

    async def listening(self, *, service: str = MAIN) -> list[int]:
        return await self._of(service).listening()

    async def dial(self, port: int, *, service: str = MAIN) -> Connection:
        return await self._of(service).dial(port)

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        return await self.boxes[MAIN].expose_to_box(endpoint, port=port)

    async def logs(self, *, service: str = MAIN, tail: int = 65536) -> bytes:
        box = self._of(service)
        printed = self.programs[service].log() if service in self.programs else b""
        return (printed + await box.logs())[-tail:]

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        try:
            await asyncio.gather(*(program.close() for program in self.programs.values()), return_exceptions=True)
            await asyncio.gather(*(box.stop() for box in self.boxes.values()), return_exceptions=True)
        finally:
            await self.around.remove()
            self._forget(self)
