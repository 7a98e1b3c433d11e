"""An episode without an agent: it records what a driver does and answers as told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import (
    AccessView,
    HostEndpoint,
    ModelEndpoint,
    PromptOutcome,
    Sandbox,
    SoftVerdict,
    Task,
    TurnRecord,
)
from benchflow_testing_kit.launching import NoRewards

__all__ = ["RecordedEpisode"]


class RecordedEpisode:
    """Satisfies `contracts.Episode` for drivers that need no box and no model."""

    def __init__(
        self,
        *,
        passes: bool,
        hangs: bool = False,
        task: Task | None = None,
        agent: Callable[[RecordedEpisode, str], Awaitable[None]] | None = None,
    ) -> None:
        """`agent`: what is done about each prompt; it may call what the driver serves (`served`, URLs)."""
        self.served: list[str] = []
        self._task = task
        self._agent = agent
        self.prompts: list[tuple[str, str]] = []
        self.rewards: list[float] = []
        self.notes: list[tuple[str, Mapping[str, Any]]] = []
        self._passes = passes
        self._hangs = hangs

    @property
    def task(self) -> Task:
        return self._task or Task(name="kit", path=Path(), format="kit", instruction="Do it.", dialect=NoRewards())

    @property
    def roles(self) -> Sequence[str]:
        return ("agent",)

    @property
    def sandbox(self) -> Sandbox:
        pytest.skip("the driver needs a box")

    @property
    def workdir(self) -> str:
        return "/app"

    @property
    def user(self) -> str | None:
        return None

    async def prompt(
        self, role: str, text: str | None, *, scene: str = "default", view: AccessView | None = None
    ) -> TurnRecord:
        await asyncio.sleep(3600 if self._hangs else 0)
        self.prompts.append((role, text or self.task.instruction))
        if self._agent is not None:
            await self._agent(self, self.prompts[-1][1])
        return TurnRecord(scene, role, len(self.prompts), self.prompts[-1][1], PromptOutcome("end_turn"), ())

    async def end_scene(self) -> None:
        """Nothing is running."""

    async def soft_verify(self) -> SoftVerdict:
        return SoftVerdict({"reward": 1.0 if self._passes else 0.0})

    async def serve(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        self.served.append(f"http://{endpoint.host}:{endpoint.port}")
        return self.served[-1]

    def reward(
        self, value: float, *, source: str, step: int | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        self.rewards.append(value)

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        self.notes.append((kind, data))

    def report(self, data: Mapping[str, Any]) -> None:
        self.notes.append(("report", data))

    async def model(self, purpose: str) -> ModelEndpoint:
        pytest.skip(f"the driver needs a model: {purpose}")

    async def ask_model(
        self, purpose: str, talk: Sequence[tuple[str, str]], system: str = "", *, max_tokens: int = 2048
    ) -> str:
        pytest.skip(f"the driver needs a model: {purpose}")

    async def ask_user(self, method: str, *given: Any) -> Any:
        pytest.skip("the driver needs a simulated user")

    async def solution(self) -> str | None:
        return None
