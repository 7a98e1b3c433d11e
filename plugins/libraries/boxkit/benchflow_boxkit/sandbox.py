"""One running box at a vendor's: everything of the sandbox contract, over one link to the supervisor in it."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from benchflow_boxkit.box import Box
from benchflow_boxkit.channel import Channel
from benchflow_boxkit.command import Command
from benchflow_boxkit.link import Link
from benchflow_boxkit.snapshots import Indexes, Snapshots
from benchflow_boxkit.views import shown
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import (
    AccessView,
    ByteStream,
    ImageRef,
    NetworkPolicy,
    Snapshot,
    StartRequest,
)
from benchflow_core.errors import (
    ConfigurationError,
    InfrastructureError,
    SandboxLost,
    SandboxStartError,
    TransportError,
)

__all__ = ["BoxSandbox", "Machine", "Tools", "open_channel", "require_known", "require_options"]


class Machine(Protocol):
    """What a vendor's plugin supplies: one box of the vendor's, already running."""

    @property
    def id(self) -> str: ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know: a limit that was changed, for one."""

    async def connect(self) -> ByteStream:
        """Run `package.ATTACH` as root and give its standard streams. `SandboxLost` where the box is gone for good."""

    async def set_network(self, policy: NetworkPolicy) -> None:
        """Change what the box reaches. `CapabilityMissing` where the vendor cannot."""

    async def logs(self, tail: int) -> bytes:
        """What the vendor has of the box's main process."""

    async def delete(self) -> None:
        """Remove the box. Safe to call again; never raises for one that is gone."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the boxes of a provider share."""

    indexes: Indexes
    snapshots: Snapshots
    start: Callable[[ImageRef, StartRequest, NetworkPolicy], Awaitable[Machine]]
    """Start a box of the vendor's; on failure or cancellation nothing of it is left."""
    forget: Callable[[BoxSandbox], None]
    shut_ports: tuple[int, ...] = ()
    """Of the vendor's own servers in a box: a limited program cannot connect to them."""


async def open_channel(machine: Machine, who: str) -> Channel:
    link = Link(machine.connect, who)
    try:
        await link.open()
    except BaseException:
        await link.close()
        raise
    return Channel(link, who)


class BoxSandbox(Box):
    def __init__(self, tools: Tools, image: ImageRef, request: StartRequest, upstream: Mapping[str, str]) -> None:
        super().__init__(image, request, upstream, tools.forget)
        self._tools = tools
        self._machine: Machine | None = None

    async def begin(self, revert: tuple[str, ...] = ()) -> None:
        self._machine = machine = await self._tools.start(self._image, self._request, self._network.policy)
        who = f"Box {self._request.name}"
        try:
            channel = await open_channel(machine, who)
        except TransportError as error:
            raise SandboxStartError(f"{who} cannot be talked to: {error.message}") from error
        self._open(channel)
        await self._settle(machine.id, await self._furnish(channel, revert), tuple(machine.notices))

    async def _furnish(self, channel: Channel, revert: tuple[str, ...]) -> list[str]:
        key = str(self._image.meta["index"])
        skip = list(self._image.meta.get("layers") or ())
        try:
            answer = await channel.call("begin", workdir=self._workdir, skip=skip)
            if self._tools.indexes.find(key) is None:
                await self._tools.indexes.take(key, channel, answer["image"])
            if Snapshots.is_snapshot(self._image):
                await self._tools.snapshots.furnish(channel, self._image, revert)
                answer = await channel.call("furnished", workdir=self._workdir)
        except OSError as error:
            raise InfrastructureError(f"Box {self._request.name} cannot be furnished: {error}.") from error
        return list(answer["users"])

    def _command(
        self,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        user: str | None,
        view: AccessView | None = None,
    ) -> Command:
        wanted = shown(view, apart=True, shut=self._tools.shut_ports)
        return replace(super()._command(argv, cwd, env, user), view=wanted)

    async def _capture(self, name: str, keep: bool) -> Snapshot:
        assert self._channel is not None
        found = self._tools.indexes.find(str(self._image.meta["index"]))
        if found is None:
            raise InfrastructureError("What the image had is not known any more: the cache was removed.")
        snapshots, carry = self._tools.snapshots, self._request.carry_changes
        return await snapshots.take(self._channel, self._image, found[1], name, keep=keep, carry=carry)

    async def set_network(self, policy: NetworkPolicy) -> None:
        await self._live()
        assert self._machine is not None
        await self._machine.set_network(policy)
        await self._network.set_policy(policy)

    async def logs(self, *, service: str = "main", tail: int = 65536) -> bytes:
        self._require_main(service)
        if self._machine is None:
            return b""
        return (await self._machine.logs(tail))[-tail:]

    async def _end(self) -> None:
        machine, self._machine, channel = self._machine, None, self._channel
        await self._leave()
        if channel is not None:
            await channel.close()
        if machine is not None:
            with contextlib.suppress(SandboxLost):
                await machine.delete()


def require_known(image: ImageRef, vendor: str) -> None:
    if "index" not in image.meta:
        raise SandboxStartError(f"The image {image.ref} was not prepared by {vendor}.", retryable=False)


def require_options(options: Mapping[str, Any], known: Mapping[str, str], vendor: str) -> None:
    """`known`: option to what it is for."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        told = "; ".join(f"{name}: {what}" for name, what in known.items())
        raise ConfigurationError(f"{vendor} has no option {unknown[0]!r}.", remedy=f"Possible: {told}.")
