"""The time that a simulated user may take for an answer. It is not the agent's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

from benchflow_core.errors import BenchflowError, ConfigurationError

__all__ = ["UserDeadline"]


class UserDeadline:
    """Seconds that a user may take for one answer, and how long it took for all of them so far."""

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

    async def answer(self, method: str, answer: Awaitable[Any]) -> Any:
        """Await a user's answer. A user that raises or never answers is the config's failure, named as that."""
        try:
            with self._waiting():
                async with asyncio.timeout(self._limit) as limit:
                    return await answer
        except BenchflowError:
            raise
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise ConfigurationError(f"the user's {method}() raised CancelledError: {error}") from error
        except (Exception, SystemExit) as error:
            if isinstance(error, TimeoutError) and limit.expired():
                late = f"the user's {method}() did not answer within {self._limit:g} s."
                raise ConfigurationError(late, remedy="Mend it, or set user_timeout.") from error
            raise ConfigurationError(f"the user's {method}() raised {type(error).__name__}: {error}") from error
