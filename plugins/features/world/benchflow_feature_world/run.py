"""The world of one rollout: provisioned before the agent, watched while it works, told to the verifier, torn down."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts import (
    Capability,
    DownloadLimits,
    FeatureBox,
    FeatureRun,
    HostServiceContext,
    Resources,
    RunView,
)
from benchflow_core.errors import CapabilityMissing, ConfigurationError, InfrastructureError
from benchflow_feature_world.handover import INSIDE, VARIABLE, Handover, hand_over, read_handover
from benchflow_feature_world.seeding import root_of
from benchflow_feature_world.services import Service
from benchflow_feature_world.state import PYTHON_VARIABLE
from benchflow_feature_world.world import World, WorldDirs

if TYPE_CHECKING:
    from benchflow_feature_world.feature import WorldFeaturePlan

__all__ = ["WorldRun"]

_WORKSPACE: Final = DownloadLimits(max_bytes=64 * 1024 * 1024, max_entries=20_000, max_depth=32)
_MEMORY_MB: Final = 2048
_ROOT: Final = (None, "root", "0")
_STATE: Final = Path("world", "state")
"""Where a rollout's folder keeps what the verifier was told."""


class WorldRun(FeatureRun):
    """The world while its rollout lives."""

    def __init__(self, planned: WorldFeaturePlan, run: RunView) -> None:
        self.plan, self._run = planned, run
        self._world: World | None = None
        self._handover: Handover | None = None

    @property
    def world(self) -> World:
        """What `Rollout.feature("world")` gives: `snapshot`, `restore`, `reset`, `query`."""
        if self._world is None:
            raise ConfigurationError("this rollout has no environment, or start() was not called.")
        return self._world

    @asynccontextmanager
    async def box(self, box: FeatureBox) -> AsyncIterator[None]:
        """Provision the box and its services, and show the agent what it may see of them."""
        planned = self.plan.world
        for notice in planned.notices:
            self._run.notice(notice)
        async with AsyncExitStack() as stack:
            stack.callback(self._forget)
            if planned.needs_box:
                await self._hide_state(box)
                self._world = world = await self._provisioned(box, stack)
                for notice in world.notices:
                    self._run.notice(notice)
                await stack.enter_async_context(world.shown(box.show))
                self._say_reach(box)
            for service in planned.hosted:
                await self._serve(service, box, stack)
            endpoints = self._world.endpoints if self._world else {}
            self._run.event("world_ready", {**planned.stamp(), "endpoints": endpoints})
            yield

    def turns(self, box: FeatureBox) -> AbstractAsyncContextManager[None]:
        """End the agent's work when a service ends."""
        return self._world.guard() if self._world else super().turns(box)

    @asynccontextmanager
    async def verification(self, box: FeatureBox, folder: Path) -> AsyncIterator[None]:
        """Bring out the state as it is now, for the verifier; of a finished rollout, read what was brought out then."""
        if self._world is not None:
            self._handover = await hand_over(self._world, folder / _STATE)
        elif self._run.saved is not None:
            self._handover = read_handover(self._run.saved / _STATE)
        yield

    @asynccontextmanager
    async def verifier(self, box: FeatureBox) -> AsyncIterator[Mapping[str, str]]:
        """Lay the state into the verifier's box and show it the services; of the agent's own box it goes again."""
        handover = self._handover
        if handover is None:
            yield {}
            return
        await handover.lay(box.sandbox)
        try:
            if not box.agents:
                async with handover.shown(box.show):
                    yield {VARIABLE: INSIDE}
                return
            why = "the agent's processes may still run in this box, and could have taken the world's ports"
            for port in handover.ports:
                self._run.finding("world-port-unproven", f"tcp/{port}", why)
            yield {VARIABLE: INSIDE}
        finally:
            if box.agents:
                with suppress(InfrastructureError):
                    await handover.clear(box.sandbox)

    async def save(self, folder: Path) -> None:
        planned = self.plan.world
        if not planned.needs_box:
            return
        if planned.persistent:
            raise CapabilityMissing(f"environment '{planned.name}' is one for all rollouts: it cannot be branched.")
        if planned.own_box and (not planned.state_paths or planned.backend.kind == "sandbox"):
            raise CapabilityMissing(
                f"environment '{planned.name}' declares no state that could be copied.",
                remedy="Add [environment.state] with the paths of its databases or files.",
            )
        await hand_over(self.world, folder / _STATE)

    def result(self) -> Mapping[str, Any]:
        stamp = self.plan.world.stamp()
        return {"world": stamp, "env_hash": stamp["env_hash"]}

    def lock(self) -> Mapping[str, Any]:
        """Return what it was and what it said: a manifest by its whole content."""
        manifest = self.plan.world.manifest
        said = manifest.environment.model_dump(mode="json") if manifest else None
        return {"world": {**self.plan.world.stamp(), "asked": list(self.plan.asked), "environment": said}}

    # --- parts -------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._world = None

    async def _provisioned(self, box: FeatureBox, stack: AsyncExitStack) -> World:
        planned = self.plan.world
        if not planned.persistent:
            world = World(planned, WorldDirs(self._run.dir / "world" / "logs"))
            stack.push_async_callback(world.teardown)
            return await self._make(world, box)

        async def make() -> World:
            return await self._make(World(planned, WorldDirs(self._run.dir.parent / "world-logs")), box)

        return await self._run.once_per_job(f"{planned.env_hash}", make)

    async def _make(self, world: World, box: FeatureBox) -> World:
        run, planned = self._run, self.plan.world
        run.secret(world.token)
        env = self._process_env()
        earlier = read_handover(run.saved / _STATE) if run.saved else None
        if run.saved is not None and earlier is None:
            raise ConfigurationError(f"the state of environment '{planned.name}' was not kept in {run.saved}.")
        if not planned.own_box:
            await world.provision(box.sandbox, box.image, run.forget, own=False, env=env, earlier=earlier)
            return world
        image = await run.image(self.plan.request, planned.layers(), planned.runtimes())
        for notice in image.notices:
            run.notice(notice)
        limited = Capability.LIMIT_MEMORY in self.plan.capabilities
        python = {PYTHON_VARIABLE: image.runtimes["python"]} if "python" in image.runtimes else {}
        own = await run.start_box(
            image,
            "world",
            env=python,
            resources=Resources(memory_mb=_MEMORY_MB) if limited else Resources(),
            entrypoint=False,
            workdir=None,
        )
        await world.provision(own, image, run.forget, own=True, env=env, earlier=earlier)
        return world

    def _process_env(self) -> dict[str, str]:
        """Return variables for the world's own processes: which task it is, and host variables the user allowed."""
        planned, run = self.plan.world, self._run
        if planned.manifest is None:
            return {}
        declared, allowed = planned.manifest.environment, run.allowed_env
        for name in declared.forward_env.keys:
            if name in run.env and name not in allowed:
                run.notice(f"{name} is not given to the environment: add --allow-env {name} for that.")
        env = {name: allowed[name] for name in declared.forward_env.keys if name in allowed}
        selection = declared.task_selection
        if selection.mechanism != "env_var" or selection.inject_into != "entrypoint":
            return env
        if not planned.persistent:
            env[selection.key] = self.plan.task.path.name
        elif selection.model_fields_set:
            run.notice(f'one world serves all tasks, so {selection.key} is not set there: inject_into = "exec" works.')
        return env

    async def _hide_state(self, box: FeatureBox) -> None:
        """Remove from the agent's box what the image or the task's folder holds of the world's state."""
        planned, environment = self.plan.world, self.plan.task.environment
        paths = [path for places in planned.places.values() for path in places]
        if planned.own_box:
            paths += [*planned.state_paths, *(path for path in planned.seeds if path.startswith("/"))]
            if environment.upload_context and (context := environment.context) is not None:
                inside = [file.relative_to(context) for file in planned.seeds.values() if file.is_relative_to(context)]
                paths += [posixpath.join(box.workdir, name.as_posix()) for name in inside]
        await _remove(box, paths)

    def _say_reach(self, box: FeatureBox) -> None:
        """Say in the result where the agent could reach the services' files."""
        user = self._run.settings["sandbox_user"] or self.plan.task.agent_user or box.image.user
        if self.plan.world.own_box or (Capability.USERS in self.plan.capabilities and user not in _ROOT):
            return
        why = "this sandbox has no second box and no second user for the world: the agent can reach its services' files"
        self._run.finding("world-within-reach", "/data", why)
        self._run.notice(why)

    async def _serve(self, service: Service, box: FeatureBox, stack: AsyncExitStack) -> None:
        """Start a service of this process and show it at its port in the agent's box."""
        run, spec = self._run, service.spec
        assert spec.serve is not None

        async def copy(folder: Path) -> None:
            await box.sandbox.download(box.workdir, folder, limits=_WORKSPACE)

        async def ask(talk: Sequence[tuple[str, str]], system: str) -> str:
            return await run.ask_model(service.name, service.options.get("model"), talk, system)

        def log(line: str) -> None:
            run.event("service_log", {"service": service.name, "line": line})

        context = HostServiceContext(
            name=service.name,
            workdir=box.workdir,
            copy_workspace=copy,
            ask=ask,
            instruction=self.plan.task.instruction,
            options=service.options,
            log=log,
        )
        await box.show(await stack.enter_async_context(spec.serve(context)), service.port)


async def _remove(box: FeatureBox, paths: Sequence[str]) -> None:
    """Remove what the globs name."""
    if paths:
        script = 'for p in "$@"; do rm -rf -- $p; done'
        await box.sandbox.exec(("sh", "-c", script, "sh", *paths), cwd="/", user=root_of(box.sandbox), timeout=60)
