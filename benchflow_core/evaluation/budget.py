"""Budgets of a whole run: when one is used up nothing new starts, what runs is finished, and it is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchflow_core.quick import dataclass

__all__ = ["Budget", "Spent", "spent_of"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and money. What nobody reported is not in it."""

    tokens: int = 0
    cost: float = 0.0
    unknown: int = 0
    """Rollouts whose cost nobody could tell although a model was asked."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.cost + other.cost, self.unknown + other.unknown)


def spent_of(result: Mapping[str, Any]) -> Spent:
    """Return what one finished attempt used: its agents, its judges and its simulated users together."""
    agent = result.get("agent_result") or {}
    gateway = (agent.get("usage_details") or {}).get("gateway") or {}
    used = [(agent.get("total_tokens") or 0, agent.get("cost_usd"))]
    for who in ("judge", "user"):
        usage = gateway.get(who) or {}
        used.append(((usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0), usage.get("cost_usd")))
    return Spent(
        tokens=sum(tokens for tokens, _ in used),
        cost=sum(cost or 0.0 for _, cost in used),
        unknown=int(any(tokens and cost is None for tokens, cost in used)),
    )


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the user's; `None`: none."""

    max_cost: float | None = None
    max_tokens: int | None = None
    max_time: float | None = None

    def exceeded(self, spent: Spent, seconds: float) -> str | None:
        """Which limit is reached, in words."""
        if self.max_cost is not None and spent.cost >= self.max_cost:
            return f"--max-cost {self.max_cost:g} is reached: {spent.cost:.4g} USD spent"
        if self.max_tokens is not None and spent.tokens >= self.max_tokens:
            return f"--max-tokens {self.max_tokens} is reached: {spent.tokens} tokens used"
        if self.max_time is not None and seconds >= self.max_time:
            return f"--max-time {self.max_time:g} s is reached"
        return None

    @property
    def limited(self) -> bool:
        return (self.max_cost, self.max_tokens, self.max_time) != (None, None, None)
