"""The provider: what a job holds open."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from benchflow_boxkit import leases
from benchflow_boxkit.interpreter import machine
from benchflow_boxkit.layering import require_runtimes

from benchflow_core.contracts.common import Layer, Runtime
from benchflow_core.contracts.sandboxes import (
    ImageRef,
    ImageRequest,
    NetworkPolicy,
    SandboxContext,
    Snapshot,
    StartRequest,
)
from benchflow_core.errors import CapabilityMissing, ConfigurationError, SandboxStartError
from benchflow_sandbox_docker import addresses
from benchflow_sandbox_docker.box import DockerSandbox
from benchflow_sandbox_docker.container import Container, ContainerPlan, Mount
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.host import find
from benchflow_sandbox_docker.images import EngineImages, reference
from benchflow_sandbox_docker.interpreter import INTERPRETER, MOUNT, PYTHON
from benchflow_sandbox_docker.layers import Layers
from benchflow_sandbox_docker.leases import reap_dead
from benchflow_sandbox_docker.snapshots import ContainerSnapshots
from benchflow_sandbox_docker.volumes import Volumes

if TYPE_CHECKING:
    from benchflow_sandbox_docker.compose.sandbox import ComposeSandbox

__all__ = ["DockerProvider"]

_BUILD_TERM = 3 * 3600.0
_SETTLING = 0.01
ChangePlan = Callable[[ContainerPlan], ContainerPlan]


class DockerProvider:
    def __init__(self, context: SandboxContext) -> None:
        self.context = context
        self._env = _environment(context)
        self.engine = EngineClient(find(self._env))
        self._boxes: set[DockerSandbox | ComposeSandbox] = set()
        self._images = EngineImages(self.engine, context)
        self._volumes = Volumes(self.engine, context.cache_dir, context.labels)
        self._layers = Layers(self._volumes, context, self._open_builder)
        self._snapshots = ContainerSnapshots(self.engine, context.cache_dir, context.labels, self._open_donor)
        self._bridge: asyncio.Task[tuple[str, list[str]]] | None = None
        self._reaping: asyncio.Task[list[str]] | None = None
        self._walled: weakref.WeakSet[Container] = weakref.WeakSet()
        """Containers with a way out, and so with addresses that they must not reach."""
        self._forbidden: set[str] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._unwatch: Callable[[], None] = lambda: None

    # --- images ----------------------------------------------------------------------------------------------------

    async def prepare(
        self, request: ImageRequest, layers: Sequence[Layer] = (), runtimes: Sequence[Runtime] = ()
    ) -> ImageRef:
        self._sweep()
        if request.compose is not None:
            from benchflow_sandbox_docker.compose.prepare import prepare_compose

            return await prepare_compose(self, request, layers, runtimes)
        require_runtimes(runtimes, layers)
        found = await self._images.find(request)
        config = found.details.get("Config") or {}
        env = dict(row.partition("=")[::2] for row in config.get("Env") or ())
        mounts = await self._layers.mounts(found.base, layers, env)
        rows = [[mount.volume, mount.target] for mount in mounts]
        key = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12] if rows else ""
        return reference(found, key, {"python": PYTHON}, {"mounts": rows, "platform": request.platform})

    # --- boxes -----------------------------------------------------------------------------------------------------

    async def start(self, image: ImageRef, request: StartRequest) -> DockerSandbox | ComposeSandbox:
        self._sweep()
        if image.meta.get("compose"):
            from benchflow_sandbox_docker.compose.run import start_compose

            return await start_compose(self, image, request)
        return await self.start_box(image, request)

    async def start_box(
        self, image: ImageRef, request: StartRequest, change: ChangePlan = lambda plan: plan
    ) -> DockerSandbox:
        """One container. `change`: what a service of a compose task wants different."""
        if "image" not in image.meta:
            raise SandboxStartError(f"The image {image.ref} was not prepared by the Docker sandbox.", retryable=False)
        start = partial(self._start_container, request, change)
        box = DockerSandbox(image, request, self._env, start, self._reach, self._snapshots, self.forget_box)
        self._boxes.add(box)
        try:
            await box.begin(request.revert)
        except BaseException:
            await asyncio.shield(box.stop())
            raise
        return box

    def labels(self, kind: str, request: StartRequest) -> dict[str, str]:
        mine = {**self.context.labels, **request.labels}
        return leases.labels(kind, mine, expires_after=request.expires_after)

    def keep(self, sandbox: ComposeSandbox) -> None:
        self._boxes.add(sandbox)

    def compose_box_for(self, token: str) -> ComposeSandbox | None:
        """Return the box whose services a state was captured beside, or `None` when it is gone."""
        many = (box for box in self._boxes if not isinstance(box, DockerSandbox) and len(box.boxes) > 1)
        return next((box for box in many if box.around.beside == token), None)

    def forget_box(self, sandbox: DockerSandbox | ComposeSandbox) -> None:
        self._boxes.discard(sandbox)

    async def _start_container(
        self, request: StartRequest, change: ChangePlan, image: ImageRef, policy: NetworkPolicy
    ) -> Container:
        mine = {**self.context.labels, **request.labels}
        mounts = [Mount(volume, target) for volume, target in image.meta.get("mounts") or ()]
        network, forbidden = await self._network(policy)
        plan = ContainerPlan(
            image=str(image.meta["image"]),
            mounts=[*mounts],
            labels=leases.labels("box", mine, expires_after=request.expires_after),
            resources=request.resources,
            network=network,
            forbidden=forbidden,
            platform=image.meta.get("platform"),
            views=request.access_views,
            own_accounts=bool(image.meta.get("own_accounts")),
            notices=tuple(f"the engine cannot choose a GPU of type {name}" for name in request.resources.gpu_types),
        )
        return await self.start_container(change(plan))

    async def start_container(self, plan: ContainerPlan) -> Container:
        """With our interpreter mounted, without which nothing of ours runs in it."""
        key = f"box-{INTERPRETER.identity()}"
        fill = partial(self._fill_interpreter, plan.image)
        while True:
            volume = await self._volumes.ensure(key, fill, nobodys=True)
            mounts = [Mount(volume, MOUNT), *plan.mounts]
            try:
                started = await Container.start(self.engine, replace(plan, mounts=mounts))
            except SandboxStartError:
                if not await self._volumes.was_pruned(key):
                    raise
                continue
            if plan.forbidden:
                self._walled.add(started)
                await self._renew_wall(started, plan.forbidden)
            return started

    async def _fill_interpreter(self, image: str, volume: str) -> None:
        there = str((await self.engine.version()).get("Arch") or machine())
        if there != machine():
            raise CapabilityMissing(
                f"The engine runs on {there} and this host on {machine()}: boxes need this host's Python.",
                remedy="Run bench on a machine like the engine's.",
            )
        archive = await asyncio.to_thread(INTERPRETER.archive)
        labels = leases.labels("builder", self.context.labels, expires_after=_BUILD_TERM)
        mount = Mount(volume, MOUNT, read_only=False)
        config = {"Image": image, "Cmd": ["true"], "Labels": labels, "HostConfig": {"Mounts": [mount.config()]}}
        identity = await self.engine.create(f"benchflow-fill-{volume}", config)
        try:
            await self.engine.put_archive(identity, MOUNT, archive)
        finally:
            await asyncio.shield(self.engine.remove(identity))

    async def _open_builder(self, image: str, mounts: Sequence[Mount]) -> Container:
        labels = leases.labels("builder", self.context.labels, expires_after=_BUILD_TERM)
        network, forbidden = await self._network(NetworkPolicy("public"))
        return await self.start_container(
            ContainerPlan(image=image, mounts=mounts, labels=labels, network=network, forbidden=forbidden)
        )

    async def _open_donor(self, image: str) -> Container:
        labels = leases.labels("builder", self.context.labels, expires_after=_BUILD_TERM)
        return await self.start_container(ContainerPlan(image=image, labels=labels))

    # --- networks --------------------------------------------------------------------------------------------------

    async def _network(self, policy: NetworkPolicy) -> tuple[str, list[str]]:
        """The engine's network for a policy, and what a box on it must not reach."""
        if policy.mode != "public":
            return "none", []
        if self._bridge is None:
            self._unwatch = addresses.watch(self._addresses_changed)
            self._bridge = asyncio.ensure_future(self._find_bridge())
        name, prefixes = await asyncio.shield(self._bridge)
        return name, addresses.forbidden(prefixes)

    async def _find_bridge(self) -> tuple[str, list[str]]:
        name = "podman" if await self.engine.is_podman() else "bridge"
        return "bridge", await addresses.bridge_prefixes(self.engine, name)

    def _addresses_changed(self) -> None:
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.ensure_future(self._renew_walls())

    async def _renew_walls(self) -> None:
        """An address that this machine has now may be one that running boxes could still reach."""
        await asyncio.sleep(_SETTLING)  # a new bridge comes with several changes
        _, now = await self._network(NetworkPolicy("public"))
        if set(now) - self._forbidden:
            self._forbidden |= set(now)
            walls = (self._renew_wall(container, ()) for container in list(self._walled))
            await asyncio.gather(*walls, return_exceptions=True)

    async def _renew_wall(self, container: Container, known: Sequence[str]) -> None:
        """Whatever came up since `known` was read."""
        _, now = await self._network(NetworkPolicy("public"))
        if (more := [prefix for prefix in now if prefix not in known]) and not container.channel.lost.is_set():
            await container.channel.call("forbid", forbidden=more)

    async def _reach(self, container: Container, policy: NetworkPolicy) -> None:
        """Change what a running container reaches."""
        network, forbidden = await self._network(policy)
        await container.channel.call("network", forbidden=forbidden, cut_off=policy.mode != "public")
        if forbidden:
            self._walled.add(container)
        if network != "none" and container.network == "none":
            await self.engine.disconnect("none", container.id)
            await self.engine.connect(network, container.id)
            container.network = network

    # --- ending ----------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Once per job: remove what killed runs left."""
        if self._reaping is None:
            self._reaping = asyncio.ensure_future(reap_dead(self.engine))

    async def forget(self, snapshot: Snapshot) -> None:
        await self._snapshots.forget(str(snapshot.image.meta.get("image")))

    async def close(self) -> None:
        self._unwatch()
        await asyncio.gather(*(box.stop() for box in list(self._boxes)), return_exceptions=True)
        await self._snapshots.close()
        for task in (self._reaping, self._bridge, self._renewing):
            await asyncio.gather(*([task] if task is not None else []), return_exceptions=True)


def _environment(context: SandboxContext) -> dict[str, str]:
    """Where the engine is looked up. The option `host` is DOCKER_HOST for this job."""
    unknown = sorted(set(context.options) - {"host"})
    if unknown:
        raise ConfigurationError(
            f"The Docker sandbox has no option {unknown[0]!r}.",
            remedy="Possible: host=unix:///path or tcp://host:port.",
        )
    env = dict(context.env or os.environ)
    return {**env, "DOCKER_HOST": context.options["host"]} if "host" in context.options else env
