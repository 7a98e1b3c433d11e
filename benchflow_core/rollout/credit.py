"""Time that is not the agent's: the host stood still, its provider asked it to wait, or its user had to think."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from benchflow_core.errors import InfrastructureError

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import Exchange
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["disk_full", "stood_still", "time_credit"]

_LONGEST_WAIT = 60.0
"""Of a wait that no further request ended: an agent that gave up is not waiting."""

_LONG = 10.0
"""Seconds of standing still that can break an agent: connections time out, a beat of a busy machine does not."""


def time_credit(rollout: Rollout) -> Callable[[], Awaitable[float]]:
    """Seconds since now that a deadline must give back; asked only when the time is up."""
    started, lost, waited = time.time(), rollout.host.watch.lost(), rollout.user_deadline.waited

    async def credit() -> float:
        found = [e async for e in _light(rollout) if e[0] >= started]
        by_user = rollout.user_deadline.waited - waited
        return rollout.host.watch.lost() - lost + by_user + _backed_off(found, time.time())

    return credit


async def _light(rollout: Rollout) -> AsyncIterator[tuple[float, float, bool]]:
    """Start, end and whether it was refused, of each model call: bodies are not held."""
    async for exchange in rollout.models.agent_exchanges():
        yield exchange.started_at, exchange.started_at + exchange.duration, _refused(exchange)


def _refused(exchange: Exchange) -> bool:
    from benchflow_core.gateway.failures import failure_of

    failure = failure_of(exchange)
    return failure is not None and failure.retryable


def _backed_off(calls: list[tuple[float, float, bool]], now: float) -> float:
    """Refused calls, and the pause after each until the agent asked again."""
    calls.sort()
    seconds = 0.0
    for number, (start, end, refused) in enumerate(calls):
        if refused:
            upcoming = calls[number + 1][0] if number + 1 < len(calls) else min(now, end + _LONGEST_WAIT)
            seconds += max(upcoming, end) - start
    return seconds


def stood_still(rollout: Rollout) -> InfrastructureError | None:
    """An agent's failure during which the host stood still is the host's: unscored, and worth another try."""
    seconds = rollout.host.watch.lost() - rollout.load_mark.lost
    if seconds < _LONG:
        return None
    return InfrastructureError(
        f"the host stood still for {seconds:.0f} s while the agent worked.", details={"reason": "host-suspended"}
    )


def disk_full(rollout: Rollout) -> InfrastructureError | None:
    """What an agent or a verifier failed to write because the host's disk was full says nothing about either."""
    if not rollout.plan.sandbox.spec.on_host or not rollout.host.watch.was_full(rollout.load_mark):
        return None
    return InfrastructureError(
        f"the disk of this host was full while the rollout ran: {rollout.host.cache}.",
        remedy="Free some space, or name a cache on another disk with BENCHFLOW_CACHE.",
        details={"reason": "host-disk-full"},
    )
