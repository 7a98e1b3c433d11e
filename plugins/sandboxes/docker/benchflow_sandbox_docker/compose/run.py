"""Starting a compose task: networks and volumes, then every service once those it needs are far enough."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from benchflow_core.contracts.sandboxes import ImageRef, NetworkPolicy, StartRequest
from benchflow_core.errors import SandboxStartError, TaskError
from benchflow_sandbox_docker.box import DockerSandbox
from benchflow_sandbox_docker.compose import networks, plans
from benchflow_sandbox_docker.compose.health import image_health, wait_completed, wait_healthy
from benchflow_sandbox_docker.compose.model import MAIN, ComposeService, Dependency, Project
from benchflow_sandbox_docker.compose.prepare import carried_project
from benchflow_sandbox_docker.compose.program import ServiceProgram
from benchflow_sandbox_docker.compose.sandbox import ComposeSandbox
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.http import EngineError

__all__ = ["StartsBoxes", "start_compose"]

_TRIES, _PAUSE = 20, 0.2


class StartsBoxes(Protocol):
    """What this needs of the provider."""

    engine: EngineClient

    async def start_box(self, image: ImageRef, request: StartRequest, change: plans.Change) -> DockerSandbox: ...

    def labels(self, kind: str, request: StartRequest) -> dict[str, str]: ...

    def keep(self, sandbox: ComposeSandbox) -> None:
        """Stop it, too, when the provider is closed."""

    def forget_box(self, sandbox: ComposeSandbox) -> None: ...

    def compose_box_for(self, token: str) -> ComposeSandbox | None:
        """Return the running services that a state was captured beside."""


class RolloutResources:
    """The networks and volumes of one rollout."""

    def __init__(self, engine: EngineClient, project: Project, internal: bool) -> None:
        self._engine, self.internal = engine, internal
        self.beside = networks.token() if project.sidecars else None
        self.nets = networks.Nets({}, {})
        self.volumes: dict[str, str] = {}

    async def make(self, project: Project, name: str, network: Mapping[str, str], volume: Mapping[str, str]) -> None:
        for wanted in project.volumes:
            self.volumes[wanted] = f"{name}-{wanted}"
            await self._engine.create_volume(self.volumes[wanted], volume)
        if project.sidecars:
            self.nets = await networks.create(self._engine, project, network, internal=self.internal)

    async def remove(self) -> None:
        for _ in range(_TRIES):
            await networks.remove(self._engine, self.nets.by_name.values())
            for volume in self.volumes.values():
                await self._engine.remove_volume(volume)
            if not await self._left():
                return
            await asyncio.sleep(_PAUSE)

    async def _left(self) -> bool:
        """Some engines call a container gone before they let go of what it used."""
        found = [await self._engine.network(net.id) for net in self.nets.by_name.values()]
        return any(found) or any([await self._engine.volume(volume) for volume in self.volumes.values()])


async def start_compose(provider: StartsBoxes, image: ImageRef, request: StartRequest) -> ComposeSandbox:
    meta = dict(image.meta["compose"])
    _, project = carried_project(
        meta, dict(request.env), cpus=request.resources.cpus, memory_mb=request.resources.memory_mb
    )
    if meta.get("captured"):
        return await start_captured(provider, project, image, request)
    around = RolloutResources(provider.engine, project, request.network.mode != "public")
    starting = Starting(provider, project, meta, request, around)
    try:
        await starting.run()
    except BaseException as error:
        await asyncio.shield(starting.sandbox.stop())
        if isinstance(error, ExceptionGroup):
            raise error.exceptions[0] from error
        raise
    return starting.sandbox


class Starting:
    """One start. Services without a need of each other start at the same time."""

    def __init__(
        self,
        provider: StartsBoxes,
        project: Project,
        meta: Mapping[str, Any],
        request: StartRequest,
        around: RolloutResources,
    ) -> None:
        self.provider, self.project, self.meta, self.request, self.around = provider, project, meta, request, around
        self.sandbox = ComposeSandbox(around, meta, provider.forget_box)
        provider.keep(self.sandbox)
        self.started = {service.name: asyncio.Event() for service in project.services}
        self.services = {service.name: service for service in project.services}

    async def run(self) -> None:
        name = f"benchflow-{networks.token()}"
        marks = {kind: self.provider.labels(kind, self.request) for kind in ("network", "volume")}
        await self.around.make(self.project, name, marks["network"], marks["volume"])
        async with asyncio.TaskGroup() as group:
            for service in self.project.services:
                group.create_task(self._start(service))

    async def _start(self, service: ComposeService) -> None:
        for need in service.needs:
            await self._wait(need)
        joined = None
        if service.joins:
            await self.started[service.joins].wait()
            joined = self.sandbox.boxes[service.joins].info.id
        change = plans.change_of(service, self.project, self.around.nets, self.around.volumes, joined)
        image = plans.service_image(service, ImageRef(**self.meta["images"][service.name]))
        box = await self.provider.start_box(image, plans.request_of(service, self.project, self.request), change)
        self.sandbox.boxes[service.name] = box
        await connect(self.provider.engine, service, self.around.nets, box)
        for copy in service.copies:
            await box.upload(copy.source, copy.target, mode=copy.mode)
        await self._run_program(service, box)
        self.started[service.name].set()

    async def _run_program(self, service: ComposeService, box: DockerSandbox) -> None:
        argv = plans.program_of(service, self.meta["configs"][service.name])
        if argv:
            program = ServiceProgram(box, argv, restart=service.restart and service.name != MAIN)
            self.sandbox.programs[service.name] = program
            await program.start()
        elif service.name != MAIN:
            raise TaskError(f"service '{service.name}' has nothing to run: its image has neither ENTRYPOINT nor CMD.")

    async def _wait(self, need: Dependency) -> None:
        other = self.services.get(need.service)
        if other is None:
            return  # not required, and not started here
        await self.started[need.service].wait()
        program = self.sandbox.programs.get(need.service)
        if program is None or need.condition == "service_started":
            return
        if need.condition == "service_completed_successfully":
            await wait_completed(other.name, program)
            return
        health = other.health or image_health(self.meta["configs"][other.name].get("Healthcheck"))
        assert health is not None, "refused when it was prepared"
        await wait_healthy(other.name, self.sandbox.boxes[other.name], program, health)


async def connect(engine: EngineClient, service: ComposeService, nets: networks.Nets, box: DockerSandbox) -> None:
    """Networks beyond the first: engines of today's Debian take one at creation."""
    endpoints = nets.endpoints(service)
    for identity in list(endpoints)[1:]:
        body = {"Container": box.info.id, "EndpointConfig": endpoints[identity]}
        try:
            await engine.http.call("POST", f"/networks/{identity}/connect", None, body)
        except EngineError as error:
            raise TaskError(f"service '{service.name}' cannot be connected: {error.reason}.") from error


async def start_captured(
    provider: StartsBoxes, project: Project, image: ImageRef, request: StartRequest
) -> ComposeSandbox:
    """`main` once more, as it was captured, with volumes of its own, among the services of the first as they are."""
    meta, main = dict(image.meta["compose"]), project.main
    first = provider.compose_box_for(meta["beside"]) if meta["beside"] else None
    if meta["beside"] and first is None:
        raise SandboxStartError("The services that this state was captured beside are gone.", retryable=False)
    there = first.around if first is not None and isinstance(first.around, RolloutResources) else None
    lent = {m.volume: there.volumes[m.volume] for m in main.shared if there is not None and m.read_only}
    own = tuple(dict.fromkeys(m.volume for m in main.shared if m.volume not in lent))
    alone = replace(project, services=(main,), volumes=own)
    around = RolloutResources(provider.engine, alone, there.internal if there else request.network.mode != "public")
    around.beside = meta["beside"]
    sandbox = ComposeSandbox(around, meta, provider.forget_box)
    provider.keep(sandbox)
    nets = there.nets.for_second_main() if there else networks.Nets({}, {})
    try:
        name = f"benchflow-{networks.token()}"
        await around.make(alone, name, {}, provider.labels("volume", request))
        change = plans.change_of(main, project, nets, {**lent, **around.volumes}, None)
        wanted = replace(plans.request_of(main, project, request), revert=request.revert)
        plain = replace(image, meta={**image.meta, "compose": None})
        sandbox.boxes[MAIN] = box = await provider.start_box(plain, wanted, change)
        await connect(provider.engine, main, nets, box)
        if there is not None:
            await _reach_as(provider.engine, box, there.internal, request.network)
    except BaseException:
        await asyncio.shield(sandbox.stop())
        raise
    return sandbox


async def _reach_as(engine: EngineClient, box: DockerSandbox, internal: bool, policy: NetworkPolicy) -> None:
    """The services' networks were made for the agent's policy; this box may have another."""
    if policy.mode == "public" and internal:
        await engine.connect("bridge", box.info.id)
    elif policy.mode != "public" and not internal:
        await box.set_network(policy)
