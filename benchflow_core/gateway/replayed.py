"""What a replay came to: how much the recording answered, and where the run left it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchflow_core.contracts.gateways import Exchange
from benchflow_core.quick import dataclass

__all__ = ["ReplayReport"]


@dataclass
class ReplayReport:
    """Of one role."""

    exact: int = 0
    """Requests that were the recorded ones to the byte."""
    like: int = 0
    """Requests that differed in times, ids and the like only."""
    live: int = 0
    """Requests that the recording did not hold, and the provider answered."""
    refused: int = 0
    """Requests that nobody could answer."""
    divergence: str | None = None
    """Where the run left the recording first; `None` where it never did, or only after the recording's end."""

    def add(self, exchange: Exchange) -> None:
        if exchange.replayed == "exact":
            self.exact += 1
        elif exchange.replayed:
            self.like += 1
        elif exchange.error_type == "replay_diverged":
            self.refused += 1
        else:
            self.live += 1
        self.divergence = self.divergence or exchange.divergence

    @property
    def served(self) -> int:
        return self.exact + self.like

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
