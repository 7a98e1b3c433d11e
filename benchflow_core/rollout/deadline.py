"""Deadlines that end in a typed error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from benchflow_core.errors import BenchflowError

__all__ = ["deadline"]

Credit = Callable[[], Awaitable[float]]


@asynccontextmanager
async def deadline(
    seconds: float | None, error: Callable[[], BenchflowError], credit: Credit | None = None
) -> AsyncIterator[None]:
    """Cancel the body after that many seconds and raise `error()`. A `TimeoutError` of its own goes through.

    `credit` is asked when the time is up: seconds since the start that are not the body's, which it gets back.
    """
    if credit is None or seconds is None:
        async with _plain(seconds, error):
            yield
        return
    try:
        async with asyncio.timeout(None) as limit:
            keeper = asyncio.create_task(_keep(limit, seconds, credit))
            try:
                yield
            finally:
                keeper.cancel()
    except TimeoutError as timeout:
        if not limit.expired():
            raise
        raise error() from timeout


@asynccontextmanager
async def _plain(seconds: float | None, error: Callable[[], BenchflowError]) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError as timeout:
        if not limit.expired():
            raise
        raise error() from timeout


async def _keep(limit: asyncio.Timeout, seconds: float, credit: Credit) -> None:
    """Sleep until the time is up and stays up when credited time is added."""
    loop = asyncio.get_running_loop()
    started, wait = loop.time(), seconds
    while wait > 0:
        await asyncio.sleep(wait)
        wait = started + seconds + await credit() - loop.time()
    limit.reschedule(loop.time())
