"""The public methods of a box with one service, `main`, as far as they are alike in every sandbox of ours.

Light: the contracts and nothing else of the kit.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from benchflow_core.contracts.sandboxes import (
    AccessView,
    BoxInfo,
    ExecResult,
    HostEndpoint,
    ImageRef,
    Process,
    Snapshot,
    StartRequest,
)
from benchflow_core.errors import CapabilityMissing, SandboxLost

__all__ = ["OneBox"]


class Programs(Protocol):
    async def exec(self, command: Any, timeout: float | None, stdin: bytes | None, max_output: int) -> ExecResult: ...

    async def spawn(self, command: Any) -> Process: ...

    def limits_hit(self) -> tuple[str, ...]:
        """See `BoxInfo.limits_hit`."""

    def close(self) -> None:
        """The box was ended, and every program with it."""


class Network(Protocol):
    @property
    def own_ports(self) -> frozenset[int]:
        """Ports inside that are ours, not the box's."""

    async def expose(self, endpoint: HostEndpoint, port: int | None) -> str: ...


class OneBox(ABC):
    """Made by a provider, which then awaits `begin`. That sets `_channel` and `_programs`; `_end` takes them away."""

    _network: Network

    def __init__(self, image: ImageRef, request: StartRequest, forget: Callable[[Any], None]) -> None:
        self._image, self._request, self._forget = image, request, forget
        self._workdir = request.workdir or image.workdir
        self._info = BoxInfo(id="", workdir=self._workdir)
        self._channel: Any = None
        """Takes calls to the supervisor in the box."""
        self._programs: Programs | None = None
        self._unchanging = asyncio.Lock()
        """Held while the box is captured or replaced: programs and files wait."""
        self._stopping: asyncio.Task[None] | None = None

    # --- what a sandbox says itself -----------------------------------------------------------------------------------

    @abstractmethod
    async def begin(self, revert: tuple[str, ...] = ()) -> None:
        """Start it; `revert`: paths to put back."""

    @abstractmethod
    async def _end(self) -> None:
        """End it, and whatever it holds."""

    @abstractmethod
    async def _capture(self, name: str, keep: bool) -> Snapshot:
        """Its files as they are now."""

    @abstractmethod
    def _command(
        self,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        user: str | None,
        view: AccessView | None = None,
    ) -> Any:
        """Build the command that `Programs.exec` expects."""

    def _require(self, what: str) -> None:
        """`CapabilityMissing` where this box has no `ports`, `snapshots`, `restoring`."""

    # --- what is alike ----------------------------------------------------------------------------------------------

    @property
    def info(self) -> BoxInfo:
        hit = self._programs.limits_hit() if self._programs is not None else ()
        return replace(self._info, limits_hit=hit) if hit else self._info

    async def _live(self) -> tuple[Any, Programs]:
        """Channel and programs, once nothing holds the box up."""
        if self._unchanging.locked():
            async with self._unchanging:
                pass
        if self._channel is None or self._programs is None or self._stopping is not None:
            raise SandboxLost(f"Box {self._request.name} was stopped.")
        return self._channel, self._programs

    def _require_main(self, service: str) -> None:
        if service != "main":
            raise CapabilityMissing(
                f"This box has one service, main; it has no {service!r}.",
                remedy="Use a sandbox with the capability compose.",
            )

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
        stdin: bytes | None = None,
        service: str = "main",
        view: AccessView | None = None,
        max_output: int = 16 * 1024 * 1024,
    ) -> ExecResult:
        self._require_main(service)
        _, programs = await self._live()
        return await programs.exec(self._command(argv, cwd, env, user, view), timeout, stdin, max_output)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        service: str = "main",
        view: AccessView | None = None,
    ) -> Process:
        self._require_main(service)
        _, programs = await self._live()
        return await programs.spawn(self._command(argv, cwd, env, user, view))

    async def processes(self, *, service: str = "main") -> list[int]:
        self._require_main(service)
        channel, _ = await self._live()
        return list((await channel.call("processes"))["pids"])

    async def kill_all(self, *, service: str = "main") -> None:
        self._require_main(service)
        channel, _ = await self._live()
        try:
            await channel.call("kill_all")
        except OSError as error:
            raise SandboxLost(f"Processes of box {self._request.name} cannot be ended: {error.strerror}.") from error

    async def snapshot(self, name: str, *, keep: bool = False) -> Snapshot:
        self._require("snapshots")
        await self._live()
        async with self._unchanging:
            if self._channel is None:
                raise SandboxLost(f"Box {self._request.name} was stopped.")
            return await self._capture(name, keep)

    async def restore(self, snapshot: Snapshot) -> None:
        self._require("restoring")
        await self._live()
        async with self._unchanging:
            await self._end()
            self._image = snapshot.image
            await self.begin()

    async def listening(self, *, service: str = "main") -> list[int]:
        self._require_main(service)
        self._require("ports")
        channel, _ = await self._live()
        ports = (await channel.call("listening"))["ports"]
        return [port for port in ports if port not in self._network.own_ports]

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        await self._live()
        return await self._network.expose(endpoint, port)

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        try:
            await self._end()
        finally:
            self._forget(self)
