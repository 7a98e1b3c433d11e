"""The truth about a turn: what its model calls say, whatever the agent says."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from typing import Any

from benchflow_core.contracts.gateways import Exchange
from benchflow_core.errors import CredentialRefused, ProviderError, ProviderRateLimited, UnknownModel

__all__ = ["failure_of", "turn_failure", "turn_verdict"]

_FATAL: Mapping[str, type[ProviderError]] = {
    "credential_refused": CredentialRefused,
    "unknown_model": UnknownModel,
}
_NOT_RETRYABLE = frozenset(
    {"permission_denied", "no_credit", "invalid_request", "not_a_model_api", "refused", "budget", "replay_diverged"}
)
_OURS = frozenset({"refused", "budget", "replay_diverged"})
_ASKED_WRONGLY = frozenset({"invalid_request", "refused", "budget"})
"""Failures that say something about what was asked, not about who was."""
_CLIENTS = frozenset({"client_gone", "revoked"})
_REMEDIES: Mapping[str, str] = {
    "credential_refused": "Check the provider's key.",
    "permission_denied": "Check what the provider's key may use.",
    "no_credit": "The account has no credit left.",
    "not_a_model_api": "Check the provider's base URL.",
    "unreachable": "Check the provider's base URL and the network.",
    "replay_diverged": "Set the provider's key to go on live from there, or record it again.",
}


def failure_of(exchange: Exchange) -> ProviderError | None:
    """A failed exchange as an error; `None` where it succeeded, or where the client itself gave up."""
    kind = exchange.error_type
    if (kind is None and exchange.status < 400) or kind in _CLIENTS:
        return None
    kind = kind or "provider_error"
    who = "the gateway refused" if kind in _OURS else "the provider failed"
    message = f"{who} a call of model '{exchange.requested_model}': {exchange.error or f'HTTP {exchange.status}'}."
    details: dict[str, Any] = {"error_type": kind, "status": exchange.status, "model": exchange.requested_model}
    remedy = _REMEDIES.get(kind)
    if kind in _FATAL:
        return _FATAL[kind](message, remedy=remedy, details=details)
    if kind == "provider_rate_limited":
        return ProviderRateLimited(message, details=details)
    return ProviderError(message, remedy=remedy, details=details, retryable=kind not in _NOT_RETRYABLE)


def turn_failure(exchanges: Iterable[Exchange], *, ended: bool = True) -> ProviderError | None:
    """The error of a turn none of whose model calls succeeded, or that came to its end on one that the provider failed.

    `ended`: the agent ended it by itself. One that was stopped may have been about to try again. The last failure
    counts: earlier ones were retried.
    """
    turn = _Turn()
    for exchange in exchanges:
        turn.add(exchange)
    return turn.failure(ended=ended)


async def turn_verdict(
    exchanges: AsyncIterable[Exchange], counts: Callable[[Exchange], bool], *, ended: bool = True
) -> tuple[ProviderError | None, int]:
    """`turn_failure` of those that count, and how many there are in all.

    One is held at a time: the requests of a long turn together are larger than a process should be.
    """
    turn, number = _Turn(), 0
    async for exchange in exchanges:
        number += 1
        if counts(exchange):
            turn.add(exchange)
    return turn.failure(ended=ended), number


class _Turn:
    def __init__(self) -> None:
        self._last: ProviderError | None = None
        self._failed = 0
        self._succeeded = self._recovered = False

    def add(self, exchange: Exchange) -> None:
        failure = failure_of(exchange)
        if failure is not None:
            self._last, self._failed, self._recovered = failure, self._failed + 1, False
        elif exchange.error_type is None:
            self._succeeded = self._recovered = True

    def failure(self, *, ended: bool) -> ProviderError | None:
        if self._last is None:
            return None
        fell_short = ended and not self._recovered and self._last.details["error_type"] not in _ASKED_WRONGLY
        if self._succeeded and not fell_short:
            return None
        self._last.details["failed_requests"] = self._failed
        return self._last
