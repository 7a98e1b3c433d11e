"""What can be told of a running rollout at a glance, for displays and budgets."""

from __future__ import annotations

from typing import Any

from benchflow_core.contracts.common import Usage
from benchflow_core.rollout.rollout import Rollout

__all__ = ["look_at"]


async def look_at(rollout: Rollout) -> dict[str, Any]:
    """Plain JSON: a worker sends the same to the process of its job."""
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
