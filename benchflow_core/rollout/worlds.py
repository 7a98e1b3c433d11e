"""The world of one rollout: provisioned before the agent, watched while it works, told to the verifier, torn down."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchflow_core.contracts.common import Capability, McpServer
from benchflow_core.contracts.environments import HostServiceContext
from benchflow_core.contracts.sandboxes import DownloadLimits, Resources
from benchflow_core.errors import ConfigurationError
from benchflow_core.rollout import prepare

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout
    from benchflow_core.world import World, WorldPlan
    from benchflow_core.world.handover import Handover
    from benchflow_core.world.services import Service

__all__ = ["RolloutWorld"]

_WORKSPACE = DownloadLimits(max_bytes=64 * 1024 * 1024, max_entries=20_000, max_depth=32)
_MEMORY_MB = 2048
_ROOT = (None, "root", "0")


class RolloutWorld:
    """Does nothing for a rollout without one."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._stack = AsyncExitStack()
        self._world: World | None = None
        self.earlier: Handover | None = None
        """The state that another rollout's world came to, to go on from: of a branch."""
        self.stored: Handover | None = None
        """What an earlier rollout's world came to: for verifying it again."""

    @property
    def plan(self) -> WorldPlan | None:
        return self._rollout.plan.world

    @property
    def world(self) -> World:
        if self._world is None:
            raise ConfigurationError("this rollout has no environment, or start() was not called.")
        return self._world

    async def provision(self) -> None:
        """The box, its services, and everything that the agent sees of them."""
        rollout, plan = self._rollout, self.plan
        if plan is None:
            return
        for notice in plan.notices:
            rollout.notice(notice)
        if plan.needs_box:
            await self._hide_state(plan)
            self._world = world = await self._provisioned(plan)
            for notice in world.notices:
                rollout.notice(notice)
            await self._stack.enter_async_context(world.shown_in(rollout.sandbox, rollout.image.runtimes))
            self._say_reach(plan)
        for service in plan.hosted:
            await self._serve(service)
        endpoints = self._world.endpoints if self._world else {}
        rollout.record.event("world_ready", {**plan.stamp(), "endpoints": endpoints})

    async def _provisioned(self, plan: WorldPlan) -> World:
        from benchflow_core.world import World, WorldDirs

        if not plan.persistent:
            world = World(plan, WorldDirs(self._rollout.dir / "world" / "logs"))
            self._stack.push_async_callback(world.teardown)
            return await self._make(plan, world)

        async def make() -> World:
            logs = self._rollout.config.jobs_dir / self._rollout.job / "world-logs"
            return await self._make(plan, World(plan, WorldDirs(logs)))

        rollout = self._rollout
        return await rollout.host.once(f"{rollout.plan.sandbox.name} {plan.env_hash}", make)

    async def _make(self, plan: WorldPlan, world: World) -> World:
        rollout = self._rollout
        rollout.host.redactor.add([world.token])
        env, start = self._env(plan), prepare.start_request(rollout)
        if not plan.own_box:
            await world.provision(
                rollout.provider, rollout.image, start, agents_box=rollout.sandbox, env=env, earlier=self.earlier
            )
            return world
        request = plan.image_request(rollout.plan.image_request(rollout.config))
        config = rollout.config
        image = await rollout.host.image(
            rollout.plan.sandbox, config.sandbox_options, request, plan.layers(), plan.runtimes()
        )
        for notice in image.notices:
            rollout.notice(notice)
        limited = Capability.LIMIT_MEMORY in rollout.plan.capabilities
        start = replace(
            start,
            name=f"{start.name}/world",
            labels={**start.labels, "purpose": "world"},
            resources=Resources(memory_mb=_MEMORY_MB) if limited else Resources(),
            entrypoint=False,
            workdir=None,
        )
        await world.provision(rollout.provider, image, start, env=env, earlier=self.earlier)
        return world

    def _env(self, plan: WorldPlan) -> dict[str, str]:
        """For the world's own processes: which task it is, and host variables that the user allowed."""
        if plan.manifest is None:
            return {}
        declared, rollout = plan.manifest.environment, self._rollout
        asked = declared.forward_env.keys
        for name in asked:
            if name in rollout.host.env and name not in rollout.host_vars:
                rollout.notice(f"{name} is not given to the environment: add --allow-env {name} for that.")
        env = {name: rollout.host_vars[name] for name in asked if name in rollout.host_vars}
        selection = declared.task_selection
        if selection.mechanism != "env_var" or selection.inject_into != "entrypoint":
            return env
        if not plan.persistent:
            env[selection.key] = rollout.plan.task.path.name
        elif selection.model_fields_set:
            rollout.notice(
                f'one world serves all tasks, so {selection.key} is not set there: inject_into = "exec" works.'
            )
        return env

    def agent_env(self) -> dict[str, str]:
        """What is run in the agent's box knows the task, where the manifest wants it there."""
        plan = self.plan
        if plan is None or plan.manifest is None:
            return {}
        selection = plan.manifest.environment.task_selection
        wanted = selection.mechanism == "env_var" and selection.inject_into == "exec"
        return {selection.key: self._rollout.plan.task.path.name} if wanted else {}

    async def _hide_state(self, plan: WorldPlan) -> None:
        """What the image or the task's folder holds of the world's state is no business of the agent's."""
        rollout = self._rollout
        copies = [path for places in plan.places.values() for path in places]
        if not plan.own_box:
            await self._remove(copies)
            return
        paths = [*copies, *plan.state_paths, *(path for path in plan.seeds if path.startswith("/"))]
        context = rollout.plan.task.environment.context
        if rollout.plan.task.environment.upload_context and context is not None:
            inside = [file.relative_to(context) for file in plan.seeds.values() if file.is_relative_to(context)]
            paths += [posixpath.join(rollout.workdir, name.as_posix()) for name in inside]
        await self._remove(paths)

    async def _remove(self, paths: Sequence[str]) -> None:
        """Remove what the globs name from the agent's box."""
        if paths:
            from benchflow_core.world.seeding import root_of

            box = self._rollout.sandbox
            script = 'for p in "$@"; do rm -rf -- $p; done'
            await box.exec(("sh", "-c", script, "sh", *paths), cwd="/", user=root_of(box), timeout=60)

    def _say_reach(self, plan: WorldPlan) -> None:
        """Where the agent could reach the services' files, the result says so."""
        if plan.own_box:
            return
        rollout = self._rollout
        user = rollout.config.sandbox_user or rollout.plan.task.agent_user or rollout.image.user
        if Capability.USERS in rollout.plan.capabilities and user not in _ROOT:
            return
        why = "this sandbox has no second box and no second user for the world: the agent can reach its services' files"
        finding = {"code": "world-within-reach", "path": "/data", "action": "noted", "why": why}
        rollout.result.findings.append(finding)
        rollout.notice(why)

    async def _serve(self, service: Service) -> None:
        """A service of this process, shown at its port in the agent's box."""
        from benchflow_core.gateway.talk import ask
        from benchflow_core.world.forward import show

        rollout, spec = self._rollout, service.spec
        assert spec.serve is not None

        async def copy(folder: Path) -> None:
            await rollout.sandbox.download(rollout.workdir, folder, limits=_WORKSPACE)

        async def put(talk: Sequence[tuple[str, str]], system: str) -> str:
            name = service.options.get("model") or rollout.result.model
            return await ask(await rollout.models.for_service(service.name, name), talk, system=system)

        def log(line: str) -> None:
            rollout.record.event("service_log", {"service": service.name, "line": line})

        context = HostServiceContext(
            name=service.name,
            workdir=rollout.workdir,
            copy_workspace=copy,
            ask=put,
            instruction=rollout.plan.task.instruction,
            options=service.options,
            log=log,
        )
        endpoint = await self._stack.enter_async_context(spec.serve(context))
        await show(self._stack, rollout.sandbox, endpoint, service.port, rollout.image.runtimes)

    def mcp_servers(self) -> tuple[McpServer, ...]:
        """The task's, and those of the services."""
        own = self._rollout.plan.task.environment.mcp_servers
        return (*own, *(self.plan.mcp_servers() if self.plan else ()))

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """The agent's work ends when a service does."""
        if self._world is None:
            yield
            return
        async with self._world.guard():
            yield

    async def hand_over(self, folder: Path) -> Handover | None:
        """The state as it is now, for a verifier."""
        if self._world is None:
            return self.stored
        from benchflow_core.world.handover import hand_over

        return await hand_over(self._world, folder)

    async def teardown(self) -> None:
        self._world = None
        await self._stack.aclose()
