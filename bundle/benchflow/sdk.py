"""The 0.2 way in: `SDK().run(task_path=…, agent=…)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchflow.runtime import run
from benchflow_core.rollout import RolloutConfig, RolloutResult

__all__ = ["SDK"]


class SDK:
    """One method. Every keyword is a field of `RolloutConfig`; without an agent, the default one runs."""

    async def run(
        self, task_path: str | Path, agent: str | None = None, model: str | None = None, **settings: Any
    ) -> RolloutResult:
        return await run(RolloutConfig(task_path=Path(task_path), agent=agent, model=model, **settings))
