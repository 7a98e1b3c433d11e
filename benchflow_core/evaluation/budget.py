"""Budgets of a whole run: when one is used up nothing new starts, what runs is finished, and it is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from benchflow_core.quick import dataclass

__all__ = ["Budget", "Spent", "spent_of"]

_N = TypeVar("_N", int, float)


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and money. What nobody reported is not in it, and where nobody reported any they are None."""

    tokens: int | None = None
    cost: float | None = None
    unknown: int = 0
    """Rollouts whose cost nobody could tell although a model was asked."""

    def __add__(self, other: Spent) -> Spent:
        tokens, cost = _sum(self.tokens, other.tokens), _sum(self.cost, other.cost)
        return Spent(tokens, cost, self.unknown + other.unknown)

    @property
    def cost_usd(self) -> float | None:
        """`cost` without the last digits of a sum of floats, as files show it."""
        return None if self.cost is None else round(self.cost, 6)


def _sum(one: _N | None, other: _N | None) -> _N | None:
    return one if other is None else other if one is None else one + other


def spent_of(result: Mapping[str, Any]) -> Spent:
    """Return what one finished attempt used: its agents, its judges and its simulated users together."""
    agent = result.get("agent_result") or {}
    gateway = (agent.get("usage_details") or {}).get("gateway") or {}
    spent = Spent(agent.get("total_tokens"), agent.get("cost_usd"))
    unknown = bool(spent.tokens and spent.cost is None)
    for who in ("judge", "user"):
        usage = gateway.get(who) or {}
        tokens, cost = _sum(usage.get("input_tokens"), usage.get("output_tokens")), usage.get("cost_usd")
        spent += Spent(tokens, cost)
        unknown = unknown or bool(tokens and cost is None)
    return Spent(spent.tokens, spent.cost, int(unknown))


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the user's; `None`: none."""

    max_cost: float | None = None
    max_tokens: int | None = None
    max_time: float | None = None

    def exceeded(self, spent: Spent, seconds: float) -> str | None:
        """Which limit is reached, in words."""
        if self.max_cost is not None and (spent.cost or 0) >= self.max_cost:
            return f"--max-cost {self.max_cost:g} is reached: {spent.cost or 0:.4g} USD spent"
        if self.max_tokens is not None and (spent.tokens or 0) >= self.max_tokens:
            return f"--max-tokens {self.max_tokens} is reached: {spent.tokens or 0} tokens used"
        if self.max_time is not None and seconds >= self.max_time:
            return f"--max-time {self.max_time:g} s is reached"
        return None

    @property
    def limited(self) -> bool:
        return (self.max_cost, self.max_tokens, self.max_time) != (None, None, None)
