"""What a request must be before anything is done with it: a key, an open path, a body that asks for no more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import aiohttp
from aiohttp import web

from benchflow_gateway_relay import policy
from benchflow_gateway_relay.keys import OpenedModel, unpriced
from benchflow_gateway_relay.recording import Recording

__all__ = ["ClientGone", "RequestRefused", "admit", "offered_secrets", "parsed", "read_body"]

_MAX_BODY = 128 * 1024 * 1024


class RequestRefused(Exception):
    """Raised when the gateway itself rejects a request."""

    def __init__(self, status: int, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.status, self.message, self.kind = status, message, kind


class ClientGone(Exception):
    """Nobody is there to write to."""


def offered_secrets(request: web.BaseRequest) -> Iterator[str]:
    """Every place where a client of one of the wires puts its key."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield bearer.strip()
    for name in ("x-api-key", "x-goog-api-key"):
        if name in request.headers:
            yield request.headers[name].strip()
    if "key" in request.query:
        yield request.query["key"]


async def read_body(request: web.BaseRequest) -> bytes:
    chunks, size = [], 0
    try:
        async for chunk in request.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > _MAX_BODY:
                raise RequestRefused(413, f"the request is larger than {_MAX_BODY} bytes")
    except (aiohttp.ClientError, web.RequestPayloadError, ConnectionError) as error:
        raise ClientGone from error
    return b"".join(chunks)


def admit(record: Recording) -> OpenedModel:
    """What the key opens of what was asked."""
    key, route = record.key, record.route
    assert route.wire is not None
    record.body = parsed(record.raw)
    body = record.body
    asked = route.model if route.model is not None else body.get("model")
    record.model = asked if isinstance(asked, str) else None
    record.streamed = bool(body.get("stream")) if route.stream is None else route.stream
    if route.wire != key.request.client_wire:
        raise RequestRefused(404, f"this key speaks {key.request.client_wire}, not {route.wire}")
    if (field := policy.redirection(body)) is not None:
        raise RequestRefused(400, f"the field '{field}' is refused: a request may not choose its upstream")
    opened = key.opens(record.model)
    if opened is None:
        known = ", ".join((*key.models, *key.request.helpers))
        raise RequestRefused(404, f"model '{record.model}' is not declared for this rollout. Declared: {known}")
    if (why := unpriced(key.request, opened.target)) is not None:
        raise RequestRefused(403, why, "budget")
    if not key.request.allow_provider_tools and (tool := policy.provider_tool(route.wire, body)) is not None:
        raise RequestRefused(
            400, f"'{tool}' is refused: without network, tools and content of the provider's side are off"
        )
    if (used_up := key.over_budget()) is not None:
        raise RequestRefused(403, used_up, "budget")
    record.target = opened.target
    if opened.target.model != record.model:
        record.ask_instead(opened.target.model)
    return opened


def parsed(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw.decode("utf-8"), object_pairs_hook=policy.unique_keys)
    except policy.Duplicate as error:
        raise RequestRefused(400, f"the body is ambiguous: {error}") from None
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the body is not JSON") from None
    if not isinstance(body, dict) or not body:
        raise RequestRefused(400, "the body is not a JSON object")
    return body
