"""Deadlines that end in a typed error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from benchflow_core.errors import BenchflowError

__all__ = ["deadline"]


@asynccontextmanager
async def deadline(seconds: float | None, error: Callable[[], BenchflowError]) -> AsyncIterator[None]:
    """Cancel the body after that many seconds and raise `error()`. A `TimeoutError` of its own goes through."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError as timeout:
        if not limit.expired():
            raise
        raise error() from timeout
