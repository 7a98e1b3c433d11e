"""Starting an agent in a box as a rollout does: files, companions, the process, the session."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from benchflow_core.contracts import (
    AgentContext,
    AgentSpec,
    Companion,
    Launch,
    ModelEndpoint,
    Process,
    RewardFiles,
    Sandbox,
    Session,
    SessionContext,
    SessionEvent,
    SessionOptions,
    Solution,
    Task,
)
from benchflow_testing_kit.sandbox.bench import Bench, ok

__all__ = ["NoRewards", "Opened", "agent_context", "open_agent"]


class NoRewards:
    """A dialect for tasks that are never verified."""

    name = "none"
    wants: tuple[str, ...] = ("reward.txt",)

    def parse(self, found: RewardFiles) -> dict[str, float]:
        return {"reward": 0.0}

    def combine(self, steps: object) -> dict[str, float]:
        return {"reward": 0.0}


@dataclass
class Opened:
    """A live session and what it has said."""

    session: Session
    events: list[SessionEvent]
    companions: list[Process] = field(default_factory=list)

    async def close(self) -> None:
        await self.session.close()
        for process in self.companions:
            await process.kill()


async def agent_context(
    bench: Bench,
    box: Sandbox,
    spec: AgentSpec,
    options: Mapping[str, str],
    env: Mapping[str, str],
    endpoint: ModelEndpoint | None = None,
) -> AgentContext:
    home = (await ok(box, "cd && pwd")).strip()
    return AgentContext(
        workdir=box.info.workdir,
        home=home,
        user=box.info.default_user,
        prefix=spec.layers[0].prefix if spec.layers else None,
        runtimes=bench.image.runtimes,
        model=endpoint.model if endpoint else spec.default_model,
        endpoint=endpoint,
        env={"HOME": home, **env},
        options=options,
    )


async def open_agent(box: Sandbox, spec: AgentSpec, context: AgentContext, folder: Path) -> Opened:
    events: list[SessionEvent] = []
    if spec.connect is not None:
        task = sample_task(folder, context.workdir)
        session = await spec.connect(SessionContext(box, task, None, context, events.append, f"{context.workdir}/logs"))
        return Opened(session, events)
    assert spec.prepare is not None
    launch = spec.prepare(context)
    await _write(box, launch, context.user)
    companions = [await _companion(box, companion, context) for companion in launch.companions]
    process = await box.spawn(launch.argv, cwd=launch.cwd or context.workdir, env={**context.env, **launch.env})
    module, _, name = spec.session.partition(":")
    open_session = getattr(import_module(module), name)
    options = SessionOptions(
        cwd=context.workdir,
        emit=events.append,
        spec=spec,
        model=context.model,
        stderr_log=folder / "stderr.log",
        session_meta=launch.session_meta,
        session_mode=launch.session_mode,
    )
    return Opened(await open_session(process, options), events, companions)


def sample_task(folder: Path, workdir: str) -> Task:
    """A task with a reference solution that leaves a file behind."""
    solution = folder / "solution"
    solution.mkdir(exist_ok=True)
    (solution / "solve.sh").write_text(f"#!/bin/sh\necho solved >{workdir}/solved\nsleep 1\n")
    where = Solution(dir=solution, target=f"{workdir}/solution")
    return Task(
        name="kit-sample", path=folder, format="kit", instruction="Say hello.", dialect=NoRewards(), solution=where
    )


async def _write(box: Sandbox, launch: Launch, user: str) -> None:
    for path, content in launch.files.items():
        with tempfile.NamedTemporaryFile(prefix="benchflow-kit-") as staged:
            await asyncio.to_thread(Path(staged.name).write_bytes, content)
            await box.upload(Path(staged.name), path, mode=0o600)


async def _companion(box: Sandbox, companion: Companion, context: AgentContext) -> Process:
    process = await box.spawn(companion.argv, cwd=context.workdir, env={**context.env, **companion.env})
    async with asyncio.timeout(companion.ready_timeout):
        while companion.ready and (await box.exec(companion.ready, env=dict(companion.env), timeout=10)).exit_code:
            await asyncio.sleep(0.2)
    return process
