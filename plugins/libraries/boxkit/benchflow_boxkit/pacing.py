"""Few requests at once, and patience when a vendor says that there are too many."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from benchflow_core.errors import InfrastructureError, SandboxRateLimited

__all__ = ["Pace"]

T = TypeVar("T")
_SAY_AGAIN: Final = 5.0
"""Seconds: whoever heard it may have to clean up first."""


class Pace:
    """Shared by all calls of one kind to one vendor.

    A refusal for too many requests holds back every caller, not only the one that was refused; pauses grow and are
    never quite the same. Failures that are worth another try are tried a few times. Everything else is raised at once.
    """

    def __init__(self, at_once: int, *, tries: int = 6, patience: float = 120.0) -> None:
        self._slots = asyncio.Semaphore(max(1, at_once))
        self._tries, self._patience = tries, patience
        self._closed_until = 0.0
        self.refusals = 0

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        deadline, failures = loop.time() + self._patience, 0
        while True:
            await self._opened()
            async with self._slots:
                try:
                    return await _heeding(call)
                except InfrastructureError as error:
                    failures += 1
                    pause = self._pause(error, failures)
                    if not error.retryable or failures >= self._tries or loop.time() + pause > deadline:
                        raise
                    if isinstance(error, SandboxRateLimited):
                        self.refusals += 1
                        self._closed_until = max(self._closed_until, loop.time() + pause)
            await asyncio.sleep(pause)

    @staticmethod
    def _pause(error: InfrastructureError, failures: int) -> float:
        asked = float(error.details.get("retry_after") or 0.0)
        return max(asked, min(20.0, 0.25 * 2.0**failures)) * random.uniform(1.0, 1.5)

    async def _opened(self) -> None:
        loop = asyncio.get_running_loop()
        while (left := self._closed_until - loop.time()) > 0:
            await asyncio.sleep(left * random.uniform(1.0, 1.3))


async def _heeding(call: Callable[[], Awaitable[T]]) -> T:
    """Cancelling ends it, also where a vendor's client loses the word in the middle of a request: it is said again."""
    task = asyncio.ensure_future(call())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_SAY_AGAIN)
        if not task.cancelled():
            task.exception()  # seen
        raise
