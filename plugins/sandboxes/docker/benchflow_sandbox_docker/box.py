"""One running box: a container, its programs and files, its network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchflow_core.contracts.sandboxes import (
    AccessView,
    BoxInfo,
    DownloadLimits,
    ExecResult,
    HostEndpoint,
    ImageRef,
    NetworkPolicy,
    Snapshot,
    StartRequest,
)
from benchflow_core.errors import CapabilityMissing, InfrastructureError, SandboxLost, TransportError
from benchflow_sandbox_docker import files
from benchflow_sandbox_docker.container import Container
from benchflow_sandbox_docker.inside import wire
from benchflow_sandbox_docker.network import Connection, Network
from benchflow_sandbox_docker.programs import Command, DockerProcess, Programs
from benchflow_sandbox_docker.snapshots import Snapshots

__all__ = ["DockerSandbox"]

_LOG = 1 << 18
StartContainer = Callable[[ImageRef, NetworkPolicy], Awaitable[Container]]
Reach = Callable[[Container, NetworkPolicy], Awaitable[None]]


class DockerSandbox:
    """Made by the provider, which then awaits `begin`."""

    def __init__(
        self,
        image: ImageRef,
        request: StartRequest,
        env: Mapping[str, str],
        start: StartContainer,
        reach: Reach,
        snapshots: Snapshots,
        forget: Callable[[DockerSandbox], None],
    ) -> None:
        self._image, self._request, self._env = image, request, env
        self._start, self._reach, self._snapshots, self._forget = start, reach, snapshots, forget
        self._workdir = request.workdir or image.workdir
        self._network = Network(request.network, env)
        self._info = BoxInfo(id="", workdir=self._workdir)
        self._container: Container | None = None
        self._programs: Programs | None = None
        self._unchanging = asyncio.Lock()
        """Held while the box is captured or replaced: programs and files wait."""
        self._stopping: asyncio.Task[None] | None = None
        self._log = bytearray()
        self._entry: asyncio.Task[None] | None = None

    @property
    def info(self) -> BoxInfo:
        return self._info

    async def begin(self, revert: tuple[str, ...] = ()) -> None:
        self._container = container = await self._start(self._image, self._network.policy)
        self._programs = programs = Programs(container.channel)
        container.channel.on_event = self._on_event
        try:
            if revert:
                await self._snapshots.revert(container, self._image, revert)
            if self._image.meta.get("packed"):
                await container.channel.call("unpack", skip=list(revert))
            users = (await container.channel.call("begin", workdir=self._workdir))["users"]
        except OSError as error:
            raise InfrastructureError(f"Box {self._request.name} cannot be furnished: {error}.") from error
        await self._network.attach(container.channel)
        default = (self._image.user or "root").partition(":")[0]
        default = "root" if default == "0" else default
        shown = tuple(users) if default in users else (*users, default)
        self._info = replace(self._info, id=container.id[:12], users=shown, default_user=default)
        if entrypoint := self._image.meta.get("entrypoint"):
            # Its command is replaced by one that waits, so that what it sets up stays.
            command = self._command([*entrypoint, "sh", "-c", "sleep infinity"], None, None, None)
            self._entry = asyncio.ensure_future(self._keep_log(await programs.spawn(command)))

    def _on_event(self, event: wire.Message) -> None:
        if event["event"] == "exit" and self._programs is not None:
            self._programs.exited(event)
        elif event["event"] == "accept":
            self._network.accepted(event)

    async def _keep_log(self, process: DockerProcess) -> None:
        async def drain(read: Callable[[], Awaitable[bytes]]) -> None:
            while data := await read():
                self._log = (self._log + data)[-_LOG:]

        await asyncio.gather(drain(process.read), drain(process.read_stderr))

    async def _live(self) -> tuple[Container, Programs]:
        """The box, once nothing holds it up."""
        if self._unchanging.locked():
            async with self._unchanging:
                pass
        if self._container is None or self._programs is None or self._stopping is not None:
            raise SandboxLost(f"Box {self._request.name} was stopped.")
        return self._container, self._programs

    def _command(
        self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, user: str | None
    ) -> Command:
        full = {**self._network.env, **self._env, **(env or {})}
        return Command(argv, cwd or self._workdir, full, user or self._image.user)

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
        _require_main(service, view)
        _, programs = await self._live()
        return await programs.exec(self._command(argv, cwd, env, user), timeout, stdin, max_output)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        service: str = "main",
        view: AccessView | None = None,
    ) -> DockerProcess:
        _require_main(service, view)
        _, programs = await self._live()
        return await programs.spawn(self._command(argv, cwd, env, user))

    async def upload(
        self, source: Path, target: str, *, user: str | None = None, mode: int | None = None, service: str = "main"
    ) -> None:
        _require_main(service)
        container, _ = await self._live()
        bulk = partial(container.engine.put_archive, container.id, "/")
        await files.upload(container.channel, source, target, user=user, mode=mode, bulk=bulk)

    async def download(
        self, source: str, target: Path, *, limits: DownloadLimits | None = None, service: str = "main"
    ) -> None:
        _require_main(service)
        container, _ = await self._live()
        await files.download(container.channel, source, target, limits or DownloadLimits())

    async def processes(self, *, service: str = "main") -> list[int]:
        _require_main(service)
        container, _ = await self._live()
        return list((await container.channel.call("processes"))["pids"])

    async def kill_all(self, *, service: str = "main") -> None:
        _require_main(service)
        container, _ = await self._live()
        try:
            await container.channel.call("kill_all")
        except OSError as error:
            raise SandboxLost(f"Processes of box {self._request.name} cannot be ended: {error.strerror}.") from error

    async def snapshot(self, name: str, *, keep: bool = False) -> Snapshot:
        await self._live()
        async with self._unchanging:
            if self._container is None:
                raise SandboxLost(f"Box {self._request.name} was stopped.")
            return await self._snapshots.take(self._container, self._image, name, keep=keep)

    async def restore(self, snapshot: Snapshot) -> None:
        await self._live()
        async with self._unchanging:
            await self._end()
            self._image = snapshot.image
            await self.begin()

    async def set_network(self, policy: NetworkPolicy) -> None:
        container, _ = await self._live()
        if policy.mode != "public":
            await self._reach(container, policy)
        await self._network.set_policy(policy)
        if policy.mode == "public":
            await self._reach(container, policy)

    async def listening(self, *, service: str = "main") -> list[int]:
        _require_main(service)
        container, _ = await self._live()
        ports = (await container.channel.call("listening"))["ports"]
        return [port for port in ports if port not in self._network.own_ports]

    async def dial(self, port: int, *, service: str = "main") -> Connection:
        _require_main(service)
        container, _ = await self._live()
        number = container.channel.number()
        connection = Connection(container.channel, number)
        try:
            await container.channel.call("dial", number, port=port)
        except OSError as error:
            await connection.close()
            raise TransportError(f"Nothing answers on port {port} of the box: {error.strerror}.") from error
        return connection

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        await self._live()
        return await self._network.expose(endpoint, port)

    async def logs(self, *, service: str = "main", tail: int = 65536) -> bytes:
        """What the image's entry point printed, and our own first process if it failed."""
        _require_main(service)
        own = bytes(self._container.channel.log) if self._container is not None else b""
        return (bytes(self._log) + own)[-tail:]

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        try:
            await self._end()
        finally:
            self._forget(self)

    async def _end(self) -> None:
        container, self._container = self._container, None
        await self._network.detach()
        if self._programs is not None:
            self._programs.close()
        if self._entry is not None:
            self._entry.cancel()
        if container is not None:
            with contextlib.suppress(SandboxLost):
                await container.remove()


def _require_main(service: str, view: AccessView | None = None) -> None:
    if service != "main":
        raise CapabilityMissing(f"This box has one service, main; it has no {service!r}.")
    if view is not None and (view.read_only or view.hidden):
        raise CapabilityMissing(
            "The Docker sandbox cannot hide paths from one process of a box.",
            remedy="Use a sandbox with the capability access-view.",
        )
