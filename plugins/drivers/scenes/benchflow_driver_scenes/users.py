"""Simulated users that need no model: a function, and one that only passes the instruction on."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from benchflow_core.contracts import BaseUser, RoundResult

__all__ = ["BaseUser", "FunctionUser", "PassthroughUser", "RoundResult"]


class PassthroughUser(BaseUser):
    """A user that says the task's instruction and stops: the same as no user."""

    async def run(self, round: int, instruction: str, round_result: RoundResult | None = None) -> str | None:
        return instruction if round == 0 else None


class FunctionUser(BaseUser):
    """A function, plain or async, as a user: `(round, instruction, round_result) -> prompt or None`."""

    def __init__(self, function: Callable[[int, str, RoundResult | None], str | Awaitable[str | None] | None]) -> None:
        self._function = function

    async def run(self, round: int, instruction: str, round_result: RoundResult | None = None) -> str | None:
        """Call the function; a plain one gets a thread, so that one that never returns holds up nothing else."""
        given = (round, instruction, round_result)
        plain = not inspect.iscoroutinefunction(self._function)
        said = await _call_in_thread(self._function, *given) if plain else self._function(*given)
        return await said if inspect.isawaitable(said) else said


async def _call_in_thread(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function in a thread that does not keep the process alive."""
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
