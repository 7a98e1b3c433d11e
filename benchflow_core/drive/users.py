"""Simulated users: Python, or a model, decides what the agent is told next."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any

from benchflow_core.contracts.drivers import Episode, SoftVerdict, TurnRecord
from benchflow_core.drive.blocking import Blocked, not_blocking
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.quick import dataclass

__all__ = ["BaseUser", "FunctionUser", "PassthroughUser", "Patience", "RoundResult", "play_user", "refuse_user"]


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

    needs_model: bool = False
    """It asks `episode.model("user")`: whether that can be reached is checked before anything starts."""
    model_name: str | None = None
    """The model that is; `None`: the rollout's."""

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
        """A plain function gets a thread: one that never returns must not hold up everything else."""
        given = (round, instruction, round_result)
        plain = not inspect.iscoroutinefunction(self._function)
        said = await _in_thread(self._function, *given) if plain else self._function(*given)
        return await said if inspect.isawaitable(said) else said


def refuse_user(user: Any, max_rounds: int) -> None:
    """What cannot be a user, said before anything starts."""
    if user is None:
        return
    if not isinstance(user, BaseUser):
        remedy = "Wrap a function in FunctionUser(…)." if callable(user) else "Subclass BaseUser."
        raise ConfigurationError(f"user is {user!r}, which is no BaseUser.", remedy=remedy)
    if max_rounds < 1:
        raise ConfigurationError(f"max_user_rounds is {max_rounds}: a user needs at least one round.")


class Patience:
    """How long a user may take for an answer, and how long it took so far: that is not the agent's time."""

    def __init__(self, seconds: float) -> None:
        self._limit, self._waited, self._since = seconds, 0.0, 0.0

    @property
    def waited(self) -> float:
        return self._waited + (time.monotonic() - self._since if self._since else 0.0)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._waited, self._since = self.waited, 0.0

    async def answer(self, what: str, answer: Awaitable[Any]) -> Any:
        """A user that raises or never answers is the config's failure, named as that."""
        try:
            with self._waiting(), not_blocking(answer, self._limit):
                async with asyncio.timeout(self._limit) as limit:
                    return await answer
        except BenchflowError:
            raise
        except Blocked as error:
            raise ConfigurationError(
                f"the user's {what}() held up everything else for {self._limit:g} s.",
                remedy="Let it await, or give FunctionUser a plain function: that runs in a thread of its own.",
            ) from error
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise ConfigurationError(f"the user's {what}() raised CancelledError: {error}") from error
        except SystemExit as error:
            raise ConfigurationError(f"the user's {what}() raised SystemExit: {error}") from error
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                late = f"the user's {what}() did not answer within {self._limit:g} s."
                raise ConfigurationError(late, remedy="Mend it, or set user_timeout.") from error
            raise ConfigurationError(f"the user's {what}() raised {type(error).__name__}: {error}") from error


async def play_user(
    episode: Episode, user: BaseUser, patience: Patience, *, max_rounds: int, solution: str | None
) -> None:
    """Rounds of prompt and soft verification until the user stops or the rounds are used up."""
    role, instruction = episode.roles[0], episode.task.instruction
    user.attach(episode)
    await patience.answer("setup", user.setup(instruction, solution))
    result: RoundResult | None = None
    rewards: list[float | None] = []
    stopped = "max_rounds"
    for number in range(max_rounds):
        prompt = await patience.answer("run", user.run(number, instruction, result))
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


async def _in_thread(function: Callable[..., Any], *given: Any) -> Any:
    """In a thread that does not keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def work() -> None:
        value: Any = None
        problem: BaseException | None = None
        try:
            value = function(*given)
        except BaseException as error:  # SystemExit would end the thread and nothing else
            plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
            problem = error if plain else RuntimeError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):  # nobody waits any more
            loop.call_soon_threadsafe(settle, value, problem)

    threading.Thread(target=work, name="benchflow-user", daemon=True).start()
    return await future
