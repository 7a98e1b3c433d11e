"""One running box."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchflow_boxkit import files
from benchflow_boxkit.box import Box
from benchflow_boxkit.channel import Channel
from benchflow_boxkit.command import Command
from benchflow_boxkit.inside.sending import Skip
from benchflow_boxkit.network import Connection
from benchflow_boxkit.programs import Programs
from benchflow_boxkit.views import shown

from benchflow_core.contracts.sandboxes import AccessView, ImageRef, NetworkPolicy, Snapshot, StartRequest
from benchflow_core.errors import CapabilityMissing, SandboxLost
from benchflow_sandbox_local import limits, snapshots
from benchflow_sandbox_local.engine import Engine, Layering, StartedBox
from benchflow_sandbox_local.leases import LeaseRequest
from benchflow_sandbox_local.network import LocalNetwork

__all__ = ["BUILDING", "LocalSandbox"]

BUILDING = "local:build"
"""The image of a box in which an image is made."""


class LimitedPrograms(Programs):
    """The programs of one box, whose limits are counted by the control groups of this host."""

    def __init__(self, channel: Channel, group: limits.Group) -> None:
        super().__init__(channel)
        self._group = group

    def count_limits(self) -> Mapping[str, int]:
        return self._group.counts()


class LocalSandbox(Box):
    def __init__(
        self,
        engine: Engine,
        image: ImageRef,
        request: StartRequest,
        env: Mapping[str, str],
        forget: Callable[[LocalSandbox], None],
        writable: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(image, request, engine.context.env, forget)
        self._engine, self._env = engine, dict(env)
        self._writable = dict(writable or {})
        shared = engine.host_network(request.network)
        self._network = LocalNetwork(request.network, engine.context.env, shared=shared)
        self._box: StartedBox | None = None

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
            workdir=self._workdir,
            building=self._image.ref == BUILDING,
        )
        if carry:  # the topmost layer is the box's own now
            below = Layering(recipe.layers[1:], recipe.shown)
            self._image = replace(self._image, meta={**self._image.meta, **below.meta()})
        self._open(box.channel)
        self._programs = LimitedPrograms(box.channel, group)
        users = box.users if not self._engine.facts["single_user"] or self._engine.plain else ("root",)
        await self._settle(box.id, users, (*box.notes, *group.notices))
        if box.workdir:
            self._info = replace(self._info, workdir=box.workdir, workdir_name=self._workdir)

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
        return replace(super()._command(argv, cwd, env, user), view=shown(view, apart=True))

    async def put(
        self, source: Path, target: str, *, user: str | None, mode: int | None, skip: Skip | None = None
    ) -> None:
        """`upload` that can leave things out."""
        channel, _ = await self._live()
        await files.upload(channel, source, target, user=user, mode=mode, skip=skip)

    async def hand_over(
        self, source: str, other: LocalSandbox, target: str, *, user: str | None, mode: int | None
    ) -> None:
        """Copy into another box, links included and owners kept, without passing through the host's file system."""
        (here, _), (there, _) = await self._live(), await other._live()
        await files.between(here, source, there, target, user=user, mode=mode, what=f"copy of {source}")

    async def _capture(self, name: str, keep: bool) -> Snapshot:
        assert self._box is not None
        return await snapshots.capture(self._engine, self._box, self._image, name, keep=keep)

    async def set_network(self, policy: NetworkPolicy) -> None:
        self._require("network policies")
        await self._live()
        if self._engine.host_network(self._request.network) or self._engine.host_network(policy):
            raise CapabilityMissing("A box on the host's network keeps it: the policy cannot change.")
        await self._network.set_policy(policy)

    async def dial(self, port: int, *, service: str = "main") -> Connection:
        self._require("ports")
        return await super().dial(port, service=service)

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
        box, self._box = self._box, None
        await self._leave()
        if box is not None:
            with contextlib.suppress(SandboxLost, OSError):
                await self._engine.remove(box)
