"""Simulated users: who decides the prompts of a rollout, instead of scenes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.drivers import Episode

__all__ = ["BaseUser", "RoundResult"]


@dataclass(frozen=True)
class RoundResult:
    """What a user knows of a round: what the agent did, and what the tests say. It is never the score."""

    round: int
    trajectory: Sequence[Mapping[str, Any]] = ()
    rewards: Mapping[str, float] | None = None
    verifier_output: str = ""
    verifier_error: str | None = None
    n_tool_calls: int = 0
    scene: str = "default"
    role: str = "agent"
    handoff_from: str | None = None
    handoff_to: str | None = None
    tests: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


class BaseUser(ABC):
    """A simulated user. Override `run`; everything else has a sensible default."""

    needs_model: bool = False
    """It asks a model: whether that can be reached is checked before anything starts."""
    model_name: str | None = None
    """The model that it asks; `None`: the rollout's."""

    async def setup(self, instruction: str, solution: str | None = None) -> None:
        """Prepare for the first round. `solution`: the reference solution's script, with `oracle_access=True` only."""

    @abstractmethod
    async def run(self, round: int, instruction: str, round_result: RoundResult | None = None) -> str | None:
        """Return the next prompt, or `None` to stop. Rounds count from 0; the first has no result yet."""

    async def on_permission(self, request: Mapping[str, Any]) -> str | None:
        """Answer an agent's question whether it may do something, with the id of one of `request["options"]`.

        `None`: the policy of the config decides.
        """
        return None

    async def on_ask(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the content of the answer to an agent's question for more information, or `None` to decline."""
        return None

    def attach(self, episode: Episode) -> None:
        """Take the episode, before `setup`: a user may need a model or the box."""
