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
from benchflow_core.evaluation.executor import RemoteRollout
from benchflow_core.evaluation.runner import Runner, Tell
from benchflow_core.results.files import write_json
from benchflow_core.rollout.rollout import Rollout

__all__ = ["LIVE", "LiveReport", "status_of"]

LIVE = "live.json"
_EVERY = 1.0
_UNHEARD = {
    **{"phase": "created", "turn": 0, "tool_calls": 0, "seconds": 0.0, "events": 0},
    **{"tokens": None, "cost_usd": None},
}


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
            row = await self._row(name, rollout)
            spent += Spent(row["tokens"], row.pop("cost_usd"))
            rows.append(row)
        runner = self._runner
        runner.running_spent = spent
        runner.check_budget()
        total = runner.spent + spent
        return {
            "time": time.time(),
            "running": rows,
            "left": runner.left,
            "tokens": total.tokens,
            "cost_usd": total.cost_usd,
            "stopping": runner.stopping,
        }

    async def _row(self, name: str, rollout: Rollout | RemoteRollout) -> dict[str, Any]:
        clock = time.monotonic()
        if isinstance(rollout, RemoteRollout):
            who, row = {"task": rollout.task, "arm": rollout.arm}, {**_UNHEARD, **rollout.row}
        else:
            who, row = {"task": rollout.result.task_name, "arm": rollout.config.arm}, await status_of(rollout)
        count = row.pop("events")
        before = self._seen.get(name)
        if before is None or before[0] != count:
            self._seen[name] = before = (count, clock)
        return {"rollout": name, **who, **row, "quiet_sec": round(clock - before[1], 1)}


async def status_of(rollout: Rollout) -> dict[str, Any]:
    """Return how far a rollout is, as plain JSON, for displays and budgets. Workers send it to their job."""
    rollout.flush_events()
    usage = await _usage(rollout)
    return {
        "phase": rollout.phase,
        "turn": rollout.turn,
        "tool_calls": rollout.tool_calls,
        "seconds": round(rollout.seconds, 1),
        "events": rollout.event_count,
        "tokens": (usage.input_tokens or 0) + (usage.output_tokens or 0) or None,
        "cost_usd": usage.cost_usd,
    }


async def _usage(rollout: Rollout) -> Usage:
    """A gateway that is going away has nothing to tell; a display must not disturb a rollout."""
    try:
        return await rollout.models.so_far()
    except Exception:
        return Usage()
