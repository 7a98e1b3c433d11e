"""Keys: what each opens, what it has used, and which requests of it are on their way."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchflow_core.contracts import KeyRequest, ModelTarget, Usage
from benchflow_core.contracts.quick import dataclass
from benchflow_gateway_relay.log import ExchangeLog
from benchflow_gateway_relay.replay import Replay

__all__ = ["Key", "KeyRing", "OpenedModel", "cost_of", "unpriced"]


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model that a key opens, and the provider's credential for it."""

    target: ModelTarget
    credential: str = field(repr=False)


class Key:
    """One issued key. Its secret is not kept, only the hash."""

    def __init__(
        self, identity: str, digest: bytes, request: KeyRequest, opens: tuple[OpenedModel, ...], log: ExchangeLog
    ) -> None:
        self.id = identity
        self.request = request
        self.log = log
        self.digest = digest
        self.revoked = False
        self.usage = Usage(requests=0)
        self._opens = opens
        self.replay = Replay(request.replay) if request.replay is not None else None
        self._tokens = 0
        """Against the cap: estimated where nothing was reported."""
        self._transports: dict[int, Any] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(target.model for target in self.request.models))

    def opens(self, model: str | None) -> OpenedModel | None:
        """Return what answers a request for `model`: itself, or for a helper what the key says of helpers."""
        exact = next((o for o in self._opens if o.target.model == model), None)
        if exact or model is None or not any(fnmatchcase(model, pattern) for pattern in self.request.helpers):
            return exact
        first = self._opens[0]
        if not self.request.own_helpers:
            return first
        prices = self.request.helper_prices.get(model, {})
        return OpenedModel(replace(first.target, model=model, prices=prices), first.credential)

    # --- limits --------------------------------------------------------------------------------------------------

    def over_budget(self) -> str | None:
        """Which cap is used up, in words. Requests that were already under way when it was reached still count."""
        tokens, cost = self.request.max_tokens, self.request.max_cost_usd
        if tokens is not None and self._tokens >= tokens:
            return f"the {tokens} tokens of this rollout are used up"
        if cost is not None and (self.usage.cost_usd or 0.0) >= cost:
            return f"the {cost:g} USD of this rollout are used up"
        return None

    def count(self, usage: Usage, estimate: int) -> None:
        """Add what a request used; `estimate` stands in for the token cap where the provider said nothing."""
        before = self.usage
        sources = (before.source, usage.source)
        free = "recording" in sources
        self.usage = Usage(
            input_tokens=_plus(before.input_tokens, usage.input_tokens),
            output_tokens=_plus(before.output_tokens, usage.output_tokens),
            cache_read_tokens=_plus(before.cache_read_tokens, usage.cache_read_tokens),
            cache_write_tokens=_plus(before.cache_write_tokens, usage.cache_write_tokens),
            cost_usd=_with_free(before, usage) if free else _plus(before.cost_usd, usage.cost_usd),
            requests=_plus(before.requests, usage.requests),
            source=next((s for s in ("provider_response", "recording") if s in sources), "unavailable"),
            complete=before.complete and usage.complete,
        )
        told = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        self._tokens += told if usage.complete else max(told, estimate)

    # --- requests on their way -----------------------------------------------------------------------------------

    @contextmanager
    def under_way(self, transport: Any) -> Iterator[None]:
        """`transport` is the client's connection; `None` when it is already gone."""
        if transport is not None:
            self._transports[id(transport)] = transport
        self._idle.clear()
        try:
            yield
        finally:
            self._transports.pop(id(transport), None)
            if not self._transports:
                self._idle.set()

    def abort(self) -> None:
        """Drop the connections of all requests under way; their handlers are cancelled by that."""
        for transport in list(self._transports.values()):
            transport.abort()

    async def idle(self, seconds: float) -> None:
        """Until nothing is under way, or the time is over."""
        if not self._idle.is_set():
            try:
                await asyncio.wait_for(self._idle.wait(), seconds)
            except TimeoutError:
                return


class KeyRing:
    """All keys of a gateway. Secrets are looked up by their hash, so that no comparison leaks how far it got."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._by_hash: dict[bytes, Key] = {}
        self._by_id: dict[str, Key] = {}

    def issue(self, request: KeyRequest, opens: tuple[OpenedModel, ...]) -> tuple[Key, str]:
        identity, secret = f"key-{secrets.token_hex(6)}", f"sk-bf-{secrets.token_urlsafe(32)}"
        key = Key(identity, _hash(secret), request, opens, ExchangeLog(self._folder / f"{identity}.jsonl"))
        self._by_hash[key.digest] = self._by_id[identity] = key
        return key, secret

    def find(self, offered: Iterable[str]) -> Key | None:
        """The first of the offered secrets that opens something."""
        found = (self._by_hash.get(_hash(secret)) for secret in offered)
        return next((key for key in found if key is not None), None)

    def get(self, identity: str) -> Key | None:
        return self._by_id.get(identity)

    def forget_secret(self, key: Key) -> None:
        """It opens nothing any more; what it recorded stays."""
        key.revoked = True
        self._by_hash.pop(key.digest, None)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._by_id.values()))


def unpriced(request: KeyRequest, target: ModelTarget) -> str | None:
    """Say why the key's spending cap cannot be kept with this model, if it cannot."""
    if request.max_cost_usd is None or {"input", "output"} <= set(target.prices):
        return None
    return f"a spending cap needs the prices of {target.provider}/{target.model}, which are not known."


def cost_of(usage: Usage, prices: Mapping[str, float]) -> float | None:
    """In US dollars; `None` where a price or a count is missing."""
    if usage.input_tokens is None or usage.output_tokens is None or not {"input", "output"} <= set(prices):
        return None
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    fresh = max(usage.input_tokens - read - written, 0)
    parts = (
        (fresh, prices["input"]),
        (usage.output_tokens, prices["output"]),
        (read, prices.get("cache_read", prices["input"])),
        (written, prices.get("cache_write", prices["input"])),
    )
    return sum(tokens * price for tokens, price in parts) / 1e6


def _with_free(a: Usage, b: Usage) -> float | None:
    """A replayed answer costs nothing, which does not make an unknown cost known."""
    paid = [usage for usage in (a, b) if usage.source != "recording" and usage.requests]
    return paid[0].cost_usd if paid else 0.0


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b
