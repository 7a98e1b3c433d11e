"""Requests that are with LiteLLM: whose they are, and what became of them at the provider."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from benchflow_gateway_relay.keys import Key, OpenedModel
from benchflow_gateway_relay.recording import Conclusion

from benchflow_core.contracts import Usage

__all__ = ["AgentRequest", "OpenRequests"]


class AgentRequest:
    """One request of an agent's. LiteLLM may turn it into several of its own, or none."""

    def __init__(self, key: Key, opened: OpenedModel) -> None:
        self.id = secrets.token_urlsafe(18)
        self.key, self.opened = key, opened
        self.answered = asyncio.Event()
        """The provider has begun to answer, or will not."""
        self._ends: list[tuple[Conclusion, int, str]] = []
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def at_provider(self) -> Iterator[None]:
        self._under_way += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    def ended(self, conclusion: Conclusion, status: int, retry_after: str) -> None:
        self._ends.append((conclusion, status, retry_after))
        self.answered.set()

    async def settled(self, seconds: float) -> None:
        """Until the provider's side is done, or the time is over: LiteLLM may answer a moment earlier."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)

    async def begun(self, seconds: float) -> None:
        """Until the provider answers or fails, or the time is over: LiteLLM may say 200 before it has asked."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.answered.wait(), seconds)

    def failure(self) -> tuple[Conclusion, int, str] | None:
        """How it failed at the provider: conclusion, status, and when to try again."""
        return self._ends[-1] if self._ends and self._ends[-1][0].kind is not None else None

    def truth(self) -> Conclusion | None:
        """All of it as one: usage adds up, the last one's outcome counts. `None`: the provider was not asked."""
        if not self._ends:
            return None
        last = self._ends[-1][0]
        usage = last.usage
        for end, _, _ in self._ends[:-1]:
            usage = _sum(end.usage, usage)
        return Conclusion(last.reply, usage, last.model, last.kind, last.message)


class OpenRequests:
    """Those that are open, by their id."""

    def __init__(self) -> None:
        self._open: dict[str, AgentRequest] = {}

    @contextmanager
    def opened(self, key: Key, opened: OpenedModel) -> Iterator[AgentRequest]:
        call = AgentRequest(key, opened)
        self._open[call.id] = call
        try:
            yield call
        finally:
            del self._open[call.id]

    def get(self, identity: str) -> AgentRequest | None:
        return self._open.get(identity)


def _sum(a: Usage, b: Usage) -> Usage:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "requests")
    both = {}
    for name in names:
        x, y = getattr(a, name), getattr(b, name)
        both[name] = y if x is None else x if y is None else x + y
    source = a.source if b.source == "unavailable" else b.source
    return Usage(**both, source=source, complete=a.complete and b.complete)
