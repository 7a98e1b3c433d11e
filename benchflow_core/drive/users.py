"""Simulated users: Python, or a model, decides what the agent is told next."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchflow_core.contracts.drivers import Episode, SoftVerdict, TurnRecord
from benchflow_core.errors import BenchflowError, ConfigurationError

__all__ = ["BaseUser", "FunctionUser", "PassthroughUser", "RoundResult", "play_user"]

_SECONDS: Final = 600.0
"""For one answer of a user."""


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
    """Override `run`. Everything else has a sensible default."""

    async def setup(self, instruction: str, solution: str | None = None) -> None:
        """Before the first round. `solution` is the reference solution's script, with `oracle_access=True` only."""

    @abstractmethod
    async def run(self, round: int, instruction: str, round_result: RoundResult | None = None) -> str | None:
        """The next prompt, or `None` to stop. Rounds count from 0; the first has no result yet."""

    async def on_permission(self, request: Mapping[str, Any]) -> str | None:
        """An agent's question whether it may do something: the id of one of `request["options"]`, or `None`: the policy
        of the config decides."""
        return None

    async def on_ask(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """An agent's question for more information: the content of the answer, or `None` to decline."""
        return None

    def attach(self, episode: Episode) -> None:
        """Before `setup`, for a user that needs a model or the box."""


class PassthroughUser(BaseUser):
    """Says the task's instruction and stops: the same as no user."""

    async def run(self, round: int, instruction: str, round_result: RoundResult | None = None) -> str | None:
        return instruction if round == 0 else None


class FunctionUser(BaseUser):
    """A function, plain or async, as a user: `(round, instruction, round_result) -> prompt or None`."""

    def __init__(self, function: Callable[[int, str, RoundResult | None], str | Awaitable[str | None] | None]) -> None:
        self._function = function

    async def run(self, round: int, instruction: str, round_result: RoundResult | None = None) -> str | None:
        said = self._function(round, instruction, round_result)
        return await said if inspect.isawaitable(said) else said


async def play_user(episode: Episode, user: BaseUser, *, max_rounds: int, solution: str | None) -> None:
    """Rounds of prompt and soft verification until the user stops or the rounds are used up."""
    role, instruction = episode.roles[0], episode.task.instruction
    user.attach(episode)
    await _ask("setup", user.setup(instruction, solution))
    result: RoundResult | None = None
    rewards: list[float | None] = []
    stopped = "max_rounds"
    for number in range(max_rounds):
        prompt = await _ask("run", user.run(number, instruction, result))
        if prompt is None:
            stopped = "user"
            break
        if not isinstance(prompt, str) or not prompt.strip():
            raise ConfigurationError(f"the user's answer in round {number} is {prompt!r}, neither a prompt nor None.")
        turn = await episode.prompt(role, prompt)
        result = _round_result(number, turn, await episode.soft_verify())
        rewards.append((result.rewards or {}).get("reward"))
        episode.note("user_round", {"round": number, "rewards": result.rewards, "error": result.verifier_error})
    episode.report({"strategy": "user", "iterations_run": len(rewards), "stop_reason": stopped, "rewards": rewards})


def _round_result(number: int, turn: TurnRecord, verdict: SoftVerdict) -> RoundResult:
    return RoundResult(
        round=number,
        trajectory=turn.events,
        rewards=verdict.rewards,
        verifier_output=verdict.output,
        verifier_error=verdict.error,
        n_tool_calls=turn.n_tool_calls,
        scene=turn.scene,
        role=turn.role,
        tests=verdict.tests,
    )


async def _ask(what: str, answer: Awaitable[Any]) -> Any:
    """A user that raises or never answers is the config's failure, named as that."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await answer
    except TimeoutError as error:
        raise ConfigurationError(f"the user's {what}() did not answer within {_SECONDS:.0f} s.") from error
    except BenchflowError:
        raise
    except Exception as error:
        raise ConfigurationError(f"the user's {what}() raised {type(error).__name__}: {error}") from error
