"""`live.json`: what is going on right now, overwritten about once a second. For displays, here and from elsewhere."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchflow_core.contracts.common import Usage
from benchflow_core.errors import BenchflowError
from benchflow_core.evaluation.attempt import Attempts
from benchflow_core.evaluation.budget import Spent
from benchflow_core.evaluation.runner import Runner, Tell
from benchflow_core.results.files import write_json
from benchflow_core.rollout.rollout import Rollout

__all__ = ["LIVE", "LiveReport"]

LIVE = "live.json"
_EVERY = 1.0


class LiveReport:
    """Looks at the running rollouts, counts what they use, and lets the budget see it."""

    def __init__(self, job_dir: Path, runner: Runner, attempts: Attempts, tell: Tell) -> None:
        self._path = job_dir / LIVE
        self._runner, self._attempts, self._tell = runner, attempts, tell
        self._seen: dict[str, tuple[int, float]] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            value = await self._look()
            self._tell("live", value)
            with suppress(BenchflowError):
                write_json(self._path, value)

    async def _look(self) -> dict[str, Any]:
        rows, spent = [], Spent()
        live = dict(self._attempts.live)
        self._seen = {name: seen for name, seen in self._seen.items() if name in live}
        for name, rollout in live.items():
            usage = await _usage(rollout)
            tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
            spent += Spent(tokens, usage.cost_usd or 0.0)
            rows.append(self._row(name, rollout, tokens))
        runner = self._runner
        runner.running_spent = spent
        runner.check_budget()
        total = runner.spent + spent
        return {
            "time": time.time(),
            "running": rows,
            "left": runner.left,
            "tokens": total.tokens,
            "cost_usd": round(total.cost, 6),
            "stopping": runner.stopping,
        }

    def _row(self, name: str, rollout: Rollout, tokens: int) -> dict[str, Any]:
        clock = time.monotonic()
        count = rollout.event_count
        before = self._seen.get(name)
        if before is None or before[0] != count:
            self._seen[name] = before = (count, clock)
        return {
            "rollout": name,
            "task": rollout.result.task_name,
            "arm": rollout.config.arm,
            "phase": rollout.phase,
            "turn": rollout.turn,
            "tool_calls": rollout.tool_calls,
            "seconds": round(rollout.seconds, 1),
            "quiet_sec": round(clock - before[1], 1),
            "tokens": tokens,
        }


async def _usage(rollout: Rollout) -> Usage:
    """A gateway that is going away has nothing to tell; a display must not disturb a rollout."""
    try:
        return await rollout.models.so_far()
    except Exception:
        return Usage()
