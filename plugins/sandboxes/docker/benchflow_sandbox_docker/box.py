"""One running box: a container, its programs and files, its network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchflow_boxkit.box import Box
from benchflow_boxkit.command import Command
from benchflow_boxkit.views import shown

from benchflow_core.contracts.sandboxes import AccessView, ImageRef, NetworkPolicy, Process, Snapshot, StartRequest
from benchflow_core.errors import CapabilityMissing, InfrastructureError, SandboxLost
from benchflow_sandbox_docker import files
from benchflow_sandbox_docker.container import Container
from benchflow_sandbox_docker.engine.attached import Attached
from benchflow_sandbox_docker.snapshots import ContainerSnapshots
from benchflow_sandbox_docker.views import seal

__all__ = ["DockerSandbox"]

_LOG = 1 << 18
StartContainer = Callable[[ImageRef, NetworkPolicy], Awaitable[Container]]
Reach = Callable[[Container, NetworkPolicy], Awaitable[None]]


class DockerSandbox(Box):
    def __init__(
        self,
        image: ImageRef,
        request: StartRequest,
        upstream: Mapping[str, str],
        start: StartContainer,
        reach: Reach,
        snapshots: ContainerSnapshots,
        forget: Callable[[DockerSandbox], None],
    ) -> None:
        super().__init__(image, request, upstream, forget)
        self._start, self._reach, self._snapshots = start, reach, snapshots
        self._container: Container | None = None
        self._log = bytearray()
        self._entry: asyncio.Task[None] | None = None

    async def begin(self, revert: tuple[str, ...] = ()) -> None:
        self._container = container = await self._start(self._image, self._network.policy)
        channel = container.channel
        self._open(channel)
        try:
            if self._image.meta.get("packed"):
                await channel.call("unpack", skip=list(revert))
            if revert:  # in volumes as well
                await self._snapshots.revert(container, self._image, revert)
            users = (await channel.call("begin", workdir=self._workdir))["users"]
        except OSError as error:
            raise InfrastructureError(f"Box {self._request.name} cannot be furnished: {error}.") from error
        await self._settle(container.id[:12], users, container.notices)
        if self._request.entrypoint and (entrypoint := self._image.meta.get("entrypoint")):
            # Its command is replaced by one that waits, so that what it sets up stays.
            command = self._command([*entrypoint, "sh", "-c", "sleep infinity"], None, None, None)
            assert self._programs is not None
            self._entry = asyncio.ensure_future(self._keep_log(await self._programs.spawn(command)))

    async def _keep_log(self, process: Process) -> None:
        async def drain(read: Callable[[], Awaitable[bytes]]) -> None:
            while data := await read():
                self._log = (self._log + data)[-_LOG:]

        await asyncio.gather(drain(process.read), drain(process.read_stderr))

    def _command(
        self,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        user: str | None,
        view: AccessView | None = None,
    ) -> Command:
        writable = self._image.meta.get("sealed")
        of_its_own = view is not None
        if writable is not None:
            view = seal(view, writable)
        if view is not None and not self._request.access_views:
            raise CapabilityMissing(
                f"Box {self._request.name} was started without access views.", remedy="Start it with access_views."
            )
        return replace(super()._command(argv, cwd, env, user), view=shown(view, apart=of_its_own))

    async def _here(self) -> Container:
        await self._live()
        assert self._container is not None
        return self._container

    async def upload(
        self, source: Path, target: str, *, user: str | None = None, mode: int | None = None, service: str = "main"
    ) -> None:
        self._require_main(service)
        container = await self._here()
        bulk = partial(container.engine.put_archive, container.id, "/")
        await files.upload(container.channel, source, target, user=user, mode=mode, bulk=bulk)

    async def _capture(self, name: str, keep: bool) -> Snapshot:
        assert self._container is not None
        carry = self._request.carry_changes
        return await self._snapshots.take(self._container, self._image, name, keep=keep, carry=carry)

    async def set_network(self, policy: NetworkPolicy) -> None:
        container = await self._here()
        if policy.mode != "public":
            await self._reach(container, policy)
        await self._network.set_policy(policy)
        if policy.mode == "public":
            await self._reach(container, policy)

    async def logs(self, *, service: str = "main", tail: int = 65536) -> bytes:
        """What the image's entry point printed, and our own first process if it failed."""
        self._require_main(service)
        line = self._channel.line if self._channel is not None else None
        own = bytes(line.log) if isinstance(line, Attached) else b""
        return (bytes(self._log) + own)[-tail:]

    async def _end(self) -> None:
        container, self._container = self._container, None
        await self._leave()
        if self._entry is not None:
            self._entry.cancel()
        if container is not None:
            with contextlib.suppress(SandboxLost):
                await container.remove()
