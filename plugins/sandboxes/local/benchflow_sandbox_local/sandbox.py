"""One running box."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from benchflow_core.errors import CapabilityMissing, SandboxLost, TransportError
from benchflow_sandbox_local import files, forward, limits, snapshots
from benchflow_sandbox_local.channel import fd_of
from benchflow_sandbox_local.engine import Box, Engine, Recipe
from benchflow_sandbox_local.helper import transfer
from benchflow_sandbox_local.leases import LeaseRequest
from benchflow_sandbox_local.network import Network
from benchflow_sandbox_local.process import LocalProcess
from benchflow_sandbox_local.programs import Command, Programs
from benchflow_sandbox_local.upstream import Upstream

__all__ = ["LocalSandbox"]


class LocalSandbox:
    """Made by the provider, which then awaits `begin`."""

    def __init__(
        self,
        engine: Engine,
        image: ImageRef,
        request: StartRequest,
        env: Mapping[str, str],
        forget: Callable[[LocalSandbox], None],
        writable: Mapping[str, str] | None = None,
    ) -> None:
        self._engine, self._image, self._request, self._env, self._forget = engine, image, request, env, forget
        self._writable = dict(writable or {})
        self._workdir = request.workdir or image.workdir
        shares = engine.host_network(request.network)
        self._network = Network(request.network, host_network=shares, upstream=Upstream.of(engine.context.env))
        self._info = BoxInfo(id="", workdir=self._workdir)
        self._box: Box | None = None
        self._programs: Programs | None = None
        self._unchanging = asyncio.Lock()
        """Held while the box is captured or replaced: programs and files wait."""
        self._stopping: asyncio.Task[None] | None = None

    @property
    def info(self) -> BoxInfo:
        return self._info

    def _require_namespaces(self, what: str) -> None:
        if self._engine.plain:
            raise CapabilityMissing(
                f"Where namespaces are forbidden (stage 3) there are no {what}.",
                remedy="Allow user namespaces to this user, or use another sandbox.",
            )

    async def begin(self, revert: tuple[str, ...] = ()) -> None:
        request = self._request
        if request.network.mode != "public":
            self._require_namespaces("network policies")
        lease = LeaseRequest(
            request.name, {**self._engine.context.labels, **request.labels}, expires_after=request.expires_after
        )
        group = limits.make(self._engine.hierarchies, request.resources, secrets.token_hex(6))
        own_network = not self._engine.host_network(request.network)
        recipe = Recipe.of(self._image.meta)
        self._box = box = await self._engine.start(
            recipe,
            lease,
            revert=revert,
            writable=self._writable,
            cgroups=group.folders,
            own_network=own_network,
            proxy_port=self._network.wanted_port,
        )
        self._programs = Programs(box.channel, group.oom_kills)
        await self._network.attach(box.channel, box.proxy_port, box.proxy)
        shown = box.users if not self._engine.facts["single_user"] or self._engine.plain else ("root",)
        default = (self._image.user or shown[0]).partition(":")[0]
        shown = shown if default in shown else (*shown, default)
        self._info = replace(
            self._info, id=box.id, users=shown, default_user=default, notices=(*box.notes, *group.notices)
        )

    async def _live(self) -> tuple[Box, Programs]:
        """The box, once nothing holds it up."""
        if self._unchanging.locked():
            async with self._unchanging:
                pass
        if self._box is None or self._programs is None or self._stopping is not None:
            raise SandboxLost(f"Box {self._request.name} was stopped.")
        return self._box, self._programs

    def _command(
        self,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        user: str | None,
        view: AccessView | None,
    ) -> Command:
        if view is not None:
            self._require_namespaces("access views")
        full = {**self._network.env, **self._env, **(env or {})}
        return Command(argv, cwd or self._workdir, full, user or self._image.user, view)

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
        _require_main(service)
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
    ) -> LocalProcess:
        _require_main(service)
        _, programs = await self._live()
        return await programs.spawn(self._command(argv, cwd, env, user, view))

    async def upload(
        self, source: Path, target: str, *, user: str | None = None, mode: int | None = None, service: str = "main"
    ) -> None:
        _require_main(service)
        await self.put(source, target, user=user, mode=mode)

    async def put(
        self, source: Path, target: str, *, user: str | None, mode: int | None, skip: transfer.Skip | None = None
    ) -> None:
        """`upload` that can leave things out."""
        box, _ = await self._live()
        await files.upload(box.channel, source, target, user=user, mode=mode, skip=skip)

    async def hand_over(
        self, source: str, other: LocalSandbox, target: str, *, user: str | None, mode: int | None
    ) -> None:
        """Copy into another box, links included and owners kept, without passing through the host's file system."""
        (box, _), (there, _) = await self._live(), await other._live()
        await files.between(box.channel, source, there.channel, target, user=user, mode=mode)

    async def download(
        self, source: str, target: Path, *, limits: DownloadLimits | None = None, service: str = "main"
    ) -> None:
        _require_main(service)
        box, _ = await self._live()
        await files.download(box.channel, source, target, limits or DownloadLimits())

    async def processes(self, *, service: str = "main") -> list[int]:
        _require_main(service)
        box, _ = await self._live()
        return list((await box.channel.call("processes"))["pids"])

    async def kill_all(self, *, service: str = "main") -> None:
        _require_main(service)
        box, _ = await self._live()
        try:
            await box.channel.call("kill_all")
        except OSError as error:
            raise SandboxLost(f"Processes of box {self._request.name} cannot be ended: {error.strerror}.") from error

    async def snapshot(self, name: str, *, keep: bool = False) -> Snapshot:
        self._require_namespaces("snapshots")
        await self._live()
        async with self._unchanging:
            if self._box is None:
                raise SandboxLost(f"Box {self._request.name} was stopped.")
            return await snapshots.capture(self._engine, self._box, self._image, name, keep=keep)

    async def restore(self, snapshot: Snapshot) -> None:
        self._require_namespaces("restoring")
        await self._live()
        async with self._unchanging:
            await self._end()
            self._image = snapshot.image
            await self.begin()

    async def set_network(self, policy: NetworkPolicy) -> None:
        self._require_namespaces("network policies")
        await self._live()
        if self._engine.host_network(self._request.network) or self._engine.host_network(policy):
            raise CapabilityMissing("A box on the host's network keeps it: the policy cannot change.")
        await self._network.set_policy(policy)

    async def listening(self, *, service: str = "main") -> list[int]:
        _require_main(service)
        self._require_namespaces("ports")
        box, _ = await self._live()
        ports = (await box.channel.call("listening"))["ports"]
        return [port for port in ports if port not in self._network.own_ports]

    async def dial(self, port: int, *, service: str = "main") -> forward.SocketStream:
        _require_main(service)
        self._require_namespaces("ports")
        box, _ = await self._live()
        try:
            _, fds = await box.channel.call_fds("dial", port=port)
        except OSError as error:
            raise TransportError(f"Nothing answers on port {port} of the box: {error.strerror}.") from error
        return forward.SocketStream(fd_of(fds))

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        await self._live()
        return await self._network.expose(endpoint, port)

    async def logs(self, *, service: str = "main", tail: int = 65536) -> bytes:
        """The box's own process prints nothing; what it noted while starting is all there is."""
        _require_main(service)
        return "".join(f"{line}\n" for line in self._info.notices).encode()[-tail:]

    async def into_layer(self, layer: str) -> None:
        """End every process; what the box wrote becomes the layer `layer`."""
        box, _ = await self._live()
        await self._engine.end(box)
        await self._engine.job("keep_layer", box=box.id, layer=layer)

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
        box, self._box = self._box, None
        if self._programs is not None:
            self._programs.close()
        await self._network.detach()
        if box is not None:
            with contextlib.suppress(SandboxLost, OSError):
                await self._engine.remove(box)


def _require_main(service: str) -> None:
    if service != "main":
        raise CapabilityMissing(
            f"The embedded sandbox runs one service, main; it has no {service!r}.",
            remedy="Use a sandbox with the capability compose.",
        )
