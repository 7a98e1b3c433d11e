"""Lines of the doctor for a cloud: are there credentials (an installed cloud that is not used needs none), does the
account answer. The credentials themselves are never shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from benchflow_boxkit.failures import Missing
from benchflow_core.contracts.common import Check
from benchflow_core.errors import BenchflowError, ConfigurationError

__all__ = ["account_checks"]

S = TypeVar("S")
_SECONDS = 15.0


def account_checks(
    settings: Callable[[Mapping[str, str]], S],
    place: Callable[[S], str],
    ask: Callable[[S], Awaitable[str]],
    *,
    remedy: str,
) -> list[Check]:
    """`settings` reads the environment, `place` names the account's address, `ask` says a word to it."""
    try:
        found = settings(os.environ)
    except ConfigurationError as error:
        return [Check("credentials", "warn", error.message, error.remedy or "")]
    return [Check("credentials", "ok", f"set, for {place(found)}"), asyncio.run(_account(found, ask, remedy))]


async def _account(settings: S, ask: Callable[[S], Awaitable[str]], remedy: str) -> Check:
    try:
        async with asyncio.timeout(_SECONDS):
            return Check("account", "ok", f"answers; {await ask(settings)}")
    except BenchflowError as error:
        return Check("account", "fail", error.message, error.remedy or remedy)
    except Missing as error:
        return Check("account", "fail", str(error), remedy)
    except TimeoutError:
        return Check("account", "fail", f"no answer in {_SECONDS:.0f} s", remedy)
