"""One tiny request before a fleet starts: is the key accepted, and does the provider know the model?"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches

from benchflow_core.contracts.gateways import ModelEndpoint, ModelTarget, Wire
from benchflow_core.errors import CredentialRefused, UnknownModel
from benchflow_core.gateway.failures import failure_of
from benchflow_core.gateway.models import PLAIN, GatewayUse, Models
from benchflow_core.gateway.resolve import WIRES
from benchflow_core.gateway.talk import post

__all__ = ["probe"]

_TIMEOUT = 60.0
_LIST_TIMEOUT = 10.0
_FINE = frozenset({"provider_rate_limited", "invalid_request", "client_gone"})
"""The key was accepted and the model found: it only did not like this request, or not now."""


async def probe(
    models: Models,
    model: str,
    env: Mapping[str, str],
    wires: Sequence[Wire] = WIRES,
    *,
    also: Sequence[str] = (),
    use: GatewayUse = PLAIN,
) -> None:
    """Ask the model for one token, through the gateway that a rollout would use.

    Raises `CredentialRefused`, `UnknownModel` with the nearest known, or another `ProviderError`; or what is wrong with
    the request itself, before anything is sent.
    """
    issued = await models.issue(model, rollout="probe", wires=wires, also=also, use=use)
    try:
        await asyncio.to_thread(_ask, issued.endpoint)
        found = [exchange async for exchange in models.exchanges(issued)]
    finally:
        await models.revoke(issued)
    failure = failure_of(found[-1]) if found else None
    if failure is None or found[-1].error_type in _FINE:
        return
    if found[-1].error_type == "permission_denied":
        raise CredentialRefused(failure.message, remedy=failure.remedy, details=failure.details)
    if isinstance(failure, UnknownModel):
        raise UnknownModel(
            f"provider '{issued.target.provider}' does not know the model '{issued.target.model}'.",
            remedy=await asyncio.to_thread(_nearest, issued.target, env),
            details=failure.details,
        )
    raise failure


def _ask(endpoint: ModelEndpoint) -> None:
    """What comes back is in the exchange; here only the request matters."""
    with suppress(OSError, ValueError):
        post(endpoint, (("user", "Say ok."),), max_tokens=16, seconds=_TIMEOUT)


def _nearest(target: ModelTarget, env: Mapping[str, str]) -> str | None:
    """What the provider has that is spelt alike, where it tells."""
    known: list[str] = []
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        known = _known(target, env)
    close = get_close_matches(target.model, known, n=3, cutoff=0.5)
    return f"Nearest that it knows: {', '.join(close)}." if close else None


def _known(target: ModelTarget, env: Mapping[str, str]) -> list[str]:
    key = next((env[name] for name in target.credential_env if env.get(name)), "")
    headers = {"authorization": f"Bearer {key}"} if target.auth == "bearer" else {}
    own = {"messages": "x-api-key", "gemini": "x-goog-api-key"}.get(target.wire)
    headers |= {own: key, "anthropic-version": "2023-06-01"} if own else {"authorization": f"Bearer {key}"}
    path = {"messages": "/v1/models?limit=1000", "gemini": "/v1beta/models?pageSize=1000"}.get(target.wire, "/models")
    request = urllib.request.Request(target.base_url.rstrip("/") + path, headers=headers)
    with urllib.request.urlopen(request, timeout=_LIST_TIMEOUT) as response:
        value = json.load(response)
    listed = value.get("data") or value.get("models") or []
    return [str(one.get("id") or one["name"]).removeprefix("models/") for one in listed]
