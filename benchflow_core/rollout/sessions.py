"""Live agent sessions: launching what a plugin's `prepare` describes, one session per role."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.acp import AcpOptions, AcpSession, open_session
from benchflow_core.contracts.agents import AgentContext, Companion, Launch, Session, SessionContext, SessionEvent
from benchflow_core.contracts.sandboxes import Process, Sandbox
from benchflow_core.drive.scenes import Role
from benchflow_core.errors import AgentError, InfrastructureError, TransportError
from benchflow_core.plugins import Loaded

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["LiveSession", "open_live_session"]

_ATTEMPTS = 3
_PROBE_EVERY = 0.25


class LiveSession:
    """A session with the processes that belong to it. `turn` and `place` say where its events belong."""

    def __init__(self, role: Role, agent: Loaded) -> None:
        self.role = role
        self.agent = agent
        self.session: Session | None = None
        self.process: Process | None = None
        self.companions: list[Process] = []
        self.place: dict[str, Any] = {}

    async def leave(self, sandbox: Sandbox) -> None:
        """End the agent itself. What it started lives on: a server it was asked for is there to be tested."""
        pid = self.process.pid if self.process else None
        if isinstance(self.session, AcpSession) and pid is not None:

            async def end() -> None:
                await sandbox.exec(("sh", "-c", 'kill -9 "$1"', "sh", str(pid)), user="root", cwd="/", timeout=10)

            with suppress(Exception):
                await self.session.leave(end=end)
        await self.close()

    async def close(self) -> None:
        """Never raises: what can be ended is ended."""
        if self.session is not None:
            with suppress(Exception):
                await self.session.close()
        for process in self.companions:
            with suppress(Exception):
                await process.kill()


async def open_live_session(rollout: Rollout, role: Role) -> LiveSession:
    """Open a role's session; a connection lost on the way is tried again, with a growing wait."""
    agent = rollout.plan.agents[role.agent]
    for attempt in range(1, _ATTEMPTS + 1):
        live = LiveSession(role, agent)
        try:
            await _open(rollout, live)
            return live
        except TransportError:
            await live.close()
            if attempt == _ATTEMPTS:
                raise
            rollout.record.event("notice", {"text": f"connection to '{role.agent}' lost, trying again ({attempt})"})
            await asyncio.sleep(2.0**attempt)
        except BaseException:
            await live.close()
            raise
    raise AssertionError("unreachable")


async def _open(rollout: Rollout, live: LiveSession) -> None:
    spec, role = live.agent.spec, live.role
    context = await _agent_context(rollout, role, spec)

    def emit(event: SessionEvent) -> None:
        rollout.heard(live, event)

    if spec.connect is not None:
        live.session = await spec.connect(_session_context(rollout, context, emit))
        return
    launch = spec.prepare(context)
    await _write_files(rollout.sandbox, launch.files, context.user)
    for companion in launch.companions:
        live.companions.append(await _start_companion(rollout.sandbox, companion, context))
    env = {**context.env, **launch.env}
    rollout.record.event("agent_launch", {"argv": list(launch.argv), "env": sorted(env), "files": sorted(launch.files)})
    process = live.process = await rollout.sandbox.spawn(
        launch.argv, cwd=launch.cwd or context.workdir, env=env, user=rollout.agent_user
    )
    live.session = await open_session(process, _acp_options(rollout, live, launch, context, emit))


async def _agent_context(rollout: Rollout, role: Role, spec: Any) -> AgentContext:
    config = rollout.config
    model = role.model or spec.default_model
    return AgentContext(
        workdir=rollout.workdir,
        home=rollout.agent_home,
        user=rollout.agent_user or "root",
        prefix=spec.layers[0].prefix if spec.layers else None,
        runtimes=rollout.image.runtimes,
        model=model,
        endpoint=await rollout.models.for_agent(role.name, spec, model),
        role=role.name,
        effort=role.reasoning_effort,
        env={"HOME": rollout.agent_home, **config.agent_env, **role.env},
        options={**config.agent_options, **role.options},
        mcp_servers=rollout.plan.task.environment.mcp_servers,
        permissions=config.permissions,
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


def _acp_options(rollout: Rollout, live: LiveSession, launch: Launch, context: AgentContext, emit: Any) -> AcpOptions:
    idle = live.role.idle_timeout_sec
    return AcpOptions(
        cwd=context.workdir,
        emit=emit,
        spec=live.agent.spec,
        mcp_servers=context.mcp_servers if live.agent.spec.mcp == "acp" else (),
        permissions=context.permissions,
        model=context.model,
        effort=context.effort,
        auth_method=context.auth.acp_method if context.auth else None,
        stderr_log=rollout.record.dir.agent_log(live.agent.name),
        handshake_timeout=live.agent.spec.handshake_timeout,
        idle_timeout=idle if idle is not None else rollout.config.agent_idle_timeout,
        session_meta=launch.session_meta,
    )


async def _write_files(sandbox: Sandbox, files: Mapping[str, bytes], user: str) -> None:
    """Secrets travel by file, mode 0600, as the agent's user."""
    for path, content in files.items():
        with tempfile.NamedTemporaryFile(prefix="benchflow-") as staged:
            staged.write(content)
            staged.flush()
            await sandbox.upload(Path(staged.name), path, user=user, mode=0o600)


async def _start_companion(sandbox: Sandbox, companion: Companion, context: AgentContext) -> Process:
    process = await sandbox.spawn(
        companion.argv, cwd=context.workdir, env={**context.env, **companion.env}, user=context.user
    )
    if not companion.ready:
        return process
    try:
        async with asyncio.timeout(companion.ready_timeout):
            while (
                await sandbox.exec(companion.ready, env=dict(companion.env), user=context.user, timeout=10)
            ).exit_code:
                await asyncio.sleep(_PROBE_EVERY)
    except TimeoutError as error:
        await process.kill()
        raise AgentError(f"'{companion.name}' was not ready within {companion.ready_timeout:.0f} s.") from error
    except InfrastructureError:
        await process.kill()
        raise
    return process
