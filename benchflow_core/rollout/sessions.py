"""Live agent sessions: launching what a plugin's `prepare` describes, one session per role."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.agents import AgentContext, Launch, Session, SessionContext, SessionEvent
from benchflow_core.contracts.common import upload_secret
from benchflow_core.contracts.sandboxes import AccessView, Process, Sandbox
from benchflow_core.contracts.scenes import Role
from benchflow_core.contracts.sessions import ClientFiles, PermissionCallback, SessionOptions
from benchflow_core.errors import CapabilityMissing, ConfigurationError, ConnectionLost, TransportError
from benchflow_core.plugins import Loaded
from benchflow_core.plugins.dotted import resolve
from benchflow_core.rollout.companions import RunningCompanion, start_companion

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["LiveSession", "open_live_session"]

_ATTEMPTS = 3


class LiveSession:
    """A session with the processes that belong to it. `turn` and `place` say where its events belong."""

    def __init__(self, role: Role, agent: Loaded, view: AccessView | None) -> None:
        self.role = role
        self.view = view
        self.agent = agent
        self.session: Session | None = None
        self.process: Process | None = None
        self.companions: list[RunningCompanion] = []
        self.place: dict[str, Any] = {}
        self.lifetimes = AsyncExitStack()
        """What features brought for it, taken back when it ends."""

    async def leave(self, sandbox: Sandbox) -> None:
        """End the agent itself. What it started lives on: a server it was asked for is there to be tested."""
        pid = self.process.pid if self.process else None
        leave = getattr(self.session, "leave", None)
        if leave is not None and pid is not None:

            async def end() -> None:
                await sandbox.exec(("sh", "-c", 'kill -9 "$1"', "sh", str(pid)), user="root", cwd="/", timeout=10)

            with suppress(Exception):
                await leave(end=end)
        await self.close()

    async def close(self) -> None:
        """End what can be ended. Only a feature's failure to take back what it brought is raised."""
        if self.session is not None:
            with suppress(Exception):
                await self.session.close()
        for process in self.companions:
            with suppress(Exception):
                await process.kill()
        await self.lifetimes.aclose()


Heard = Callable[[LiveSession, SessionEvent], None]
"""What becomes of a session's updates."""


async def open_live_session(rollout: Rollout, role: Role, view: AccessView | None, heard: Heard) -> LiveSession:
    """Open a role's session; a connection lost on the way is tried again, with a growing wait."""
    agent = rollout.plan.agents[role.agent]
    for attempt in range(1, _ATTEMPTS + 1):
        live = LiveSession(role, agent, view)
        try:
            await _open(rollout, live, heard)
            return live
        except TransportError as error:
            await live.close()
            if attempt == _ATTEMPTS:
                raise ConnectionLost(error.message, remedy=error.remedy, details=error.details) from error
            rollout.record.event("notice", {"text": f"connection to '{role.agent}' lost, trying again ({attempt})"})
            await asyncio.sleep(2.0**attempt)
        except CapabilityMissing:
            await live.close()
            if rollout.loads.pop(role.name, None) is None:
                raise
            rollout.notice(f"agent '{role.agent}' cannot load a session: role '{role.name}' starts a new one.")
        except BaseException:
            await live.close()
            raise
    raise AssertionError("unreachable")


async def _open(rollout: Rollout, live: LiveSession, heard: Heard) -> None:
    spec, role = live.agent.spec, live.role
    context = await _agent_context(rollout, role, spec)

    def emit(event: SessionEvent) -> None:
        heard(live, event)

    if spec.connect is not None:
        live.session = await spec.connect(_session_context(rollout, context, emit))
        return
    launch = spec.prepare(context)
    await _write_files(rollout.sandbox, launch.files, context.user)
    brought = await live.lifetimes.enter_async_context(
        rollout.features.variables("session", rollout.box_view, role.name)
    )
    for companion in launch.companions:
        log = rollout.record.dir.agent_log(f"{role.agent}-{companion.name}")
        live.companions.append(await start_companion(rollout.sandbox, companion, context, log))
    env = {**brought, **context.env, **launch.env}
    rollout.record.event("agent_launch", {"argv": list(launch.argv), "env": sorted(env), "files": sorted(launch.files)})
    process = live.process = await rollout.sandbox.spawn(
        launch.argv, cwd=launch.cwd or context.workdir, env=env, user=rollout.agent_user, view=live.view
    )
    open_session = resolve(spec.session, live.agent.who)
    live.session = await open_session(process, _session_options(rollout, live, launch, context, emit))


async def _agent_context(rollout: Rollout, role: Role, spec: Any) -> AgentContext:
    config = rollout.config
    network = (rollout.step.agent_network if rollout.step else None) or rollout.plan.task.agent_network
    home = rollout.home_of(role.name)
    return AgentContext(
        workdir=rollout.workdir,
        home=home,
        user=rollout.agent_user or "root",
        prefix=spec.layers[0].prefix if spec.layers else None,
        runtimes=rollout.image.runtimes,
        model=role.model,
        endpoint=await rollout.models.for_agent(role.name, rollout.plan.agents[role.agent], role.model),
        role=role.name,
        effort=role.reasoning_effort,
        env={"HOME": home, **rollout.plan.features.env, **config.agent_env, **role.env},
        options={**config.agent_options, **role.options},
        mcp_servers=(*rollout.plan.task.environment.mcp_servers, *rollout.plan.features.mcp_servers),
        permissions=config.permissions,
        auth=rollout.plan.features.auth.get(role.agent),
        web_tools=(network or rollout.plan.task.environment.network).mode == "public",
    )


def _session_context(rollout: Rollout, context: AgentContext, emit: Any) -> SessionContext:
    return SessionContext(
        sandbox=rollout.sandbox,
        task=rollout.plan.task,
        step=rollout.step,
        agent=context,
        emit=emit,
        log_dir="/logs/agent",
        solution_env=rollout.solution_env(),
    )


def _session_options(
    rollout: Rollout, live: LiveSession, launch: Launch, context: AgentContext, emit: Any
) -> SessionOptions:
    idle = live.role.idle_timeout_sec
    return SessionOptions(
        cwd=context.workdir,
        emit=emit,
        spec=live.agent.spec,
        mcp_servers=context.mcp_servers if live.agent.spec.mcp == "acp" else (),
        permissions=context.permissions,
        on_permission=_ask_user(rollout),
        elicit=_elicit(rollout),
        model=context.model,
        effort=context.effort,
        load_session=rollout.loads.get(live.role.name),
        auth_method=context.auth.acp_method if context.auth else None,
        stderr_log=rollout.record.dir.agent_log(live.role.agent),
        handshake_timeout=live.agent.spec.handshake_timeout,
        idle_timeout=idle if idle is not None else rollout.config.agent_idle_timeout,
        session_meta=launch.session_meta,
        session_mode=launch.session_mode,
        client_files=_client_files(rollout, live, context),
    )


def _client_files(rollout: Rollout, live: LiveSession, context: AgentContext) -> ClientFiles | None:
    """What the agent may ask of its client, as itself and in its own view."""
    wanted = rollout.config.client_methods
    if wanted == "none":
        return None
    return ClientFiles(
        rollout.sandbox,
        rollout.agent_user,
        context.workdir,
        env=context.env,
        view=live.view,
        files=wanted != "terminal",
        terminal=wanted != "files",
    )


def _ask_user(rollout: Rollout) -> PermissionCallback | None:
    """Return what asks the simulated user for permission, where there is one."""
    user = rollout.user
    if user is None:
        return None

    async def ask(request: Mapping[str, Any]) -> str | None:
        answer: str | None = await rollout.user_deadline.answer("on_permission", user.on_permission(request))
        return answer

    return ask


def _elicit(rollout: Rollout) -> Any:
    """An agent's questions for more information go to the simulated user."""
    user = rollout.user
    if user is None:
        return None

    async def ask(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        said = await rollout.user_deadline.answer("on_ask", user.on_ask(request))
        if said is not None and not isinstance(said, Mapping):
            raise ConfigurationError(f"the user's on_ask() gave {said!r}, neither a mapping nor None.")
        return said

    return ask


async def _write_files(sandbox: Sandbox, files: Mapping[str, bytes], user: str) -> None:
    """Secrets travel by file, mode 0600, as the agent's user. Their folders are its own too: it writes beside them."""
    folders = sorted({posixpath.dirname(path) for path in files})
    if folders:
        await sandbox.exec(("mkdir", "-p", "-m", "700", "--", *folders), cwd="/", user=user, timeout=60)
    for path, content in files.items():
        await upload_secret(sandbox, content, path, user)
