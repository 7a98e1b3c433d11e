"""One running box."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchflow_boxkit.command import Command
from benchflow_boxkit.onebox import OneBox
from benchflow_boxkit.upstream import Upstream

from benchflow_core.contracts.sandboxes import (
    AccessView,
    DownloadLimits,
    ImageRef,
    NetworkPolicy,
    Snapshot,
    StartRequest,
)
from benchflow_core.errors import CapabilityMissing, SandboxLost, TransportError
from benchflow_sandbox_local import files, forward, limits, snapshots
from benchflow_sandbox_local.channel import fd_of
from benchflow_sandbox_local.engine import Box, Engine, Layering
from benchflow_sandbox_local.helper import transfer
from benchflow_sandbox_local.leases import LeaseRequest
from benchflow_sandbox_local.network import Network
from benchflow_sandbox_local.programs import Programs

__all__ = ["BUILDING", "LocalSandbox"]

BUILDING = "local:build"
"""The image of a box in which an image is made."""


class LocalSandbox(OneBox):
    _network: Network

    def __init__(
        self,
        engine: Engine,
        image: ImageRef,
        request: StartRequest,
        env: Mapping[str, str],
        forget: Callable[[LocalSandbox], None],
        writable: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(image, request, forget)
        self._engine, self._env = engine, env
        self._writable = dict(writable or {})
        shares = engine.host_network(request.network)
        self._network = Network(request.network, host_network=shares, upstream=Upstream.of(engine.context.env))
        self._box: Box | None = None

    def _require(self, what: str) -> None:
        if self._engine.plain:
            raise CapabilityMissing(
                f"Where namespaces are forbidden (stage 3) there are no {what}.",
                remedy="Allow user namespaces to this user, or use another sandbox.",
            )

    async def begin(self, revert: tuple[str, ...] = ()) -> None:
        request = self._request
        if request.network.mode != "public":
            self._require("network policies")
        lease = LeaseRequest(
            request.name, {**self._engine.context.labels, **request.labels}, expires_after=request.expires_after
        )
        group = limits.make(self._engine.hierarchies, request.resources, secrets.token_hex(6))
        own_network = not self._engine.host_network(request.network)
        recipe = Layering.of(self._image.meta)
        carry = request.carry_changes and recipe.on_snapshot
        self._box = box = await self._engine.start(
            recipe,
            lease,
            revert=revert,
            carry=carry,
            writable=self._writable,
            cgroups=group.folders,
            own_network=own_network,
            proxy_port=self._network.wanted_port,
            workdir=self._workdir,
            building=self._image.ref == BUILDING,
        )
        if carry:  # the topmost layer is the box's own now
            below = Layering(recipe.layers[1:], recipe.shown)
            self._image = replace(self._image, meta={**self._image.meta, **below.meta()})
        self._channel, self._programs = box.channel, Programs(box.channel, group)
        await self._network.attach(box.channel, box.proxy_port, box.proxy)
        shown = box.users if not self._engine.facts["single_user"] or self._engine.plain else ("root",)
        default = (self._image.user or next(iter(shown), "root")).partition(":")[0]
        shown = shown if default in shown else (*shown, default)
        self._info = replace(
            self._info,
            id=box.id,
            workdir=box.workdir or self._workdir,
            workdir_name=self._workdir if box.workdir else None,
            users=shown,
            default_user=default,
            notices=(*box.notes, *group.notices),
        )

    def _command(
        self,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        user: str | None,
        view: AccessView | None = None,
    ) -> Command:
        if view is not None:
            self._require("access views")
        full = {**self._network.env, **self._env, **(env or {})}
        return Command(argv, cwd or self._workdir, full, user or self._image.user, _shown(view))

    async def upload(
        self, source: Path, target: str, *, user: str | None = None, mode: int | None = None, service: str = "main"
    ) -> None:
        self._require_main(service)
        await self.put(source, target, user=user, mode=mode)

    async def put(
        self, source: Path, target: str, *, user: str | None, mode: int | None, skip: transfer.Skip | None = None
    ) -> None:
        """`upload` that can leave things out."""
        channel, _ = await self._live()
        await files.upload(channel, source, target, user=user, mode=mode, skip=skip)

    async def hand_over(
        self, source: str, other: LocalSandbox, target: str, *, user: str | None, mode: int | None
    ) -> None:
        """Copy into another box, links included and owners kept, without passing through the host's file system."""
        (here, _), (there, _) = await self._live(), await other._live()
        await files.between(here, source, there, target, user=user, mode=mode)

    async def download(
        self, source: str, target: Path, *, limits: DownloadLimits | None = None, service: str = "main"
    ) -> None:
        self._require_main(service)
        channel, _ = await self._live()
        await files.download(channel, source, target, limits or DownloadLimits())

    async def _capture(self, name: str, keep: bool) -> Snapshot:
        assert self._box is not None
        return await snapshots.capture(self._engine, self._box, self._image, name, keep=keep)

    async def set_network(self, policy: NetworkPolicy) -> None:
        self._require("network policies")
        await self._live()
        if self._engine.host_network(self._request.network) or self._engine.host_network(policy):
            raise CapabilityMissing("A box on the host's network keeps it: the policy cannot change.")
        await self._network.set_policy(policy)

    async def dial(self, port: int, *, service: str = "main") -> forward.SocketStream:
        self._require_main(service)
        self._require("ports")
        channel, _ = await self._live()
        try:
            _, fds = await channel.call_fds("dial", port=port)
        except OSError as error:
            raise TransportError(f"Nothing answers on port {port} of the box: {error.strerror}.") from error
        return forward.SocketStream(fd_of(fds))

    async def logs(self, *, service: str = "main", tail: int = 65536) -> bytes:
        """The box's own process prints nothing; what it noted while starting is all there is."""
        self._require_main(service)
        return "".join(f"{line}\n" for line in self._info.notices).encode()[-tail:]

    async def into_layer(self, layer: str) -> list[str]:
        """End every process; what the box wrote becomes the layer `layer`. Returns the repositories in it."""
        await self._live()
        box = self._box
        assert box is not None
        await self._engine.end(box)
        job = "keep_root" if self._engine.plain else "keep_layer"
        return list((await self._engine.job(job, box=box.id, layer=layer))["repositories"])

    async def _end(self) -> None:
        box, self._box, self._channel = self._box, None, None
        if self._programs is not None:
            self._programs.close()
        await self._network.detach()
        if box is not None:
            with contextlib.suppress(SandboxLost, OSError):
                await self._engine.remove(box)


def _shown(view: AccessView | None) -> dict[str, list[str]] | None:
    if view is None or not (view.read_only or view.hidden or view.writable):
        return None
    return {"read_only": list(view.read_only), "hidden": list(view.hidden), "writable": list(view.writable)}
