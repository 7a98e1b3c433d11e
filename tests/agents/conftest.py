"""Real agents in real boxes, pointed at a scripted model through a real gateway. Installed once, in the user's cache."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchflow_core.contracts import Exchange
from benchflow_core.errors import BuildError
from benchflow_core.rollout import Host, Rollout, RolloutConfig

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
PROVIDER_KEY = "sk-provider-key-that-must-stay-outside"


@dataclass
class Live:
    """A rollout whose agent is connected, and the model it asks."""

    rollout: Rollout
    model: Any
    role: str = "agent"

    async def prompt(self, text: str) -> str:
        """One turn; how it ended."""
        return (await self.rollout.prompt(self.role, text)).outcome.stop_reason

    async def read(self, path: str) -> str | None:
        done = await self.rollout.sandbox.exec(("cat", path), cwd="/", timeout=60)
        return done.stdout.decode() if done.exit_code == 0 else None

    async def exchanges(self) -> list[Exchange]:
        """What the gateway has recorded of the agent's own calls."""
        purpose = self.rollout.plan.agents[self.rollout.plan.roles[self.role].agent].spec.exchange_purpose
        return [e async for e in self.rollout.models.agent_exchanges() if purpose(e) == "agent"]

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return [e for e in self.rollout.record.slice(0) if not kinds or e["kind"] in kinds]

    def session(self) -> Any:
        return self.rollout.sessions[self.role].session

    async def asked(self, scenario: str) -> None:
        """Until the model is being asked for this."""
        async with asyncio.timeout(60):
            while not any(seen.scenario == scenario for seen in self.model.log):
                await asyncio.sleep(0.02)


Connect = Callable[..., Awaitable[Live]]


@pytest_asyncio.fixture
async def connect(local_model: Any, agent_cache: Path, tmp_path: Path) -> AsyncIterator[Connect]:
    """Starts a box with an agent in it and opens its session; everything is gone afterwards."""
    url = local_model.base_url
    env = {
        **os.environ,
        "BENCHFLOW_CACHE": str(agent_cache),
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": PROVIDER_KEY,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": PROVIDER_KEY,
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": PROVIDER_KEY,
        "BENCHFLOW_PROVIDER_BASE_URL": f"{url}/v1",
        "BENCHFLOW_PROVIDER_API_KEY": PROVIDER_KEY,
    }
    opened: list[Rollout] = []

    async def start(
        agent: str,
        model: str | None,
        sandbox: str = "local",
        *,
        task: Path = EXAMPLE,
        env_more: Any = None,
        before: Callable[[Rollout], Awaitable[None]] | None = None,
        **more: Any,
    ) -> Live:
        config = RolloutConfig(
            task, agent=agent, model=model, sandbox=sandbox, allow_substitute=True, jobs_dir=tmp_path, **more
        )
        rollout = await Rollout.create(config, Host(env={**env, **(env_more or {})}))
        opened.append(rollout)
        await rollout.setup()
        try:
            await rollout.start()
        except BuildError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"{agent} cannot be installed here: {error}")
        if before is not None:
            await before(rollout)
        await rollout.install_agent()
        await rollout.connect()
        return Live(rollout, local_model)

    yield start
    for rollout in opened:
        await rollout.cleanup()
        await rollout.host.close()


@pytest.fixture(scope="session")
def texts() -> Callable[[Sequence[dict[str, Any]]], str]:
    """What an agent said, put together."""
    return lambda events: "".join(e["data"]["content"].get("text", "") for e in events)
