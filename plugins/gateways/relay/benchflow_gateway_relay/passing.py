"""Passing one request through: check, forward, stream back, record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import aiohttp
from aiohttp import web

from benchflow_core.contracts import Wire
from benchflow_gateway_relay import failures, policy
from benchflow_gateway_relay.keys import Key, KeyRing, Opened
from benchflow_gateway_relay.paths import Route, find_route, model_list, wire_of_path
from benchflow_gateway_relay.recording import CLIENT_CLOSED, Recording
from benchflow_gateway_relay.sse import UsageEventFilter
from benchflow_gateway_relay.upstream import Upstream, headers_back

__all__ = ["Passage"]

_MAX_BODY = 128 * 1024 * 1024
_REDACTED = b"[redacted]"


class _Refused(Exception):
    """The gateway's own no."""

    def __init__(self, status: int, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.status, self.message, self.kind = status, message, kind


class _ClientGone(Exception):
    """Nobody is there to write to."""


class Passage:
    """The request handler of the relay's server."""

    def __init__(self, keys: KeyRing, upstream: Upstream) -> None:
        self._keys = keys
        self._upstream = upstream
        self._without_stream_usage: set[str] = set()
        """Providers that refuse `stream_options`, by base URL."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        route = find_route(request.method, request.path)
        wire: Wire = (route and route.wire) or wire_of_path(request.path)
        key = self._keys.find(_offered(request))
        if key is None:
            return _error(wire, 401, "this key is not valid, or no longer")
        if route is None:
            return _error(wire, 404, f"{request.method} {request.path} is not open: only model calls are")
        if route.kind == "models":
            return _models(key, route)
        with key.under_way(request.transport):
            return await self._pass(request, key, route)

    async def _pass(self, request: web.BaseRequest, key: Key, route: Route) -> web.StreamResponse:
        record = Recording(key, route, request.path)
        assert route.wire is not None
        try:
            record.raw = await _read(request)
            return await self._forward(request, record, _admit(record))
        except _Refused as no:
            record.failed(no.kind, no.message, no.status)
            return _error(route.wire, no.status, no.message)
        except asyncio.CancelledError:
            kind = "revoked" if key.revoked else "client_gone"
            record.failed(kind, "the key was revoked" if key.revoked else "the client went away")
            raise
        except _ClientGone:
            record.failed("client_gone", "the client went away")
            return web.Response(status=CLIENT_CLOSED)
        finally:
            record.finish()

    async def _forward(self, request: web.BaseRequest, record: Recording, opened: Opened) -> web.StreamResponse:
        wire: Wire = opened.target.wire
        try:
            upstream, added = await self._ask(request, record, opened)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            late = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError)
            status = 504 if late else 502
            record.failed("provider_error" if late else "unreachable", _reason(error), status)
            return _error(wire, status, f"the provider cannot be reached: {_reason(error)}")
        async with upstream:
            content_type = upstream.headers.get("content-type", "")
            record.answered(upstream.status, content_type, upstream.headers.get("content-encoding", ""))
            if 300 <= upstream.status < 400:
                said = f"the provider answered with a redirect ({upstream.status}); check its base URL"
                record.failed("not_a_model_api", said, 502)
                return _error(wire, 502, said)
            secret = opened.credential.encode()
            if upstream.status == 200 and (record.streamed or content_type.startswith("text/event-stream")):
                without = UsageEventFilter() if added and not record.encoding else None
                return await _stream(request, upstream, record, secret, without)
            return await _whole(request, upstream, record, secret)

    async def _ask(
        self, request: web.BaseRequest, record: Recording, opened: Opened
    ) -> tuple[aiohttp.ClientResponse, bool]:
        """The provider's response, and whether its usage event is ours and not the client's."""

        async def post(body: bytes) -> aiohttp.ClientResponse:
            return await self._upstream.post(opened, record.route, body, request.headers, request.query)

        base_url = opened.target.base_url
        body = _with_stream_usage(record) if base_url not in self._without_stream_usage else None
        if body is None:
            return await post(record.raw), False
        response = await post(body)
        if response.status != 400:
            return response, True
        # Some servers do not know `stream_options`. The client did not ask for it, so it must not suffer from it.
        response.release()
        response = await post(record.raw)
        if response.status != 400:
            self._without_stream_usage.add(base_url)
        return response, False


def _offered(request: web.BaseRequest) -> Iterator[str]:
    """Every place where a client of one of the wires puts its key."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield bearer.strip()
    for name in ("x-api-key", "x-goog-api-key"):
        if name in request.headers:
            yield request.headers[name].strip()
    if "key" in request.query:
        yield request.query["key"]


async def _read(request: web.BaseRequest) -> bytes:
    chunks, size = [], 0
    try:
        async for chunk in request.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > _MAX_BODY:
                raise _Refused(413, f"the request is larger than {_MAX_BODY} bytes")
    except (aiohttp.ClientError, web.RequestPayloadError, ConnectionError) as error:
        raise _ClientGone from error
    return b"".join(chunks)


def _admit(record: Recording) -> Opened:
    """What the key opens of what was asked."""
    key, route = record.key, record.route
    assert route.wire is not None
    record.body = _parsed(record.raw)
    body = record.body
    asked = route.model if route.model is not None else body.get("model")
    record.model = asked if isinstance(asked, str) else None
    record.streamed = bool(body.get("stream")) if route.stream is None else route.stream
    if route.wire != key.request.client_wire:
        raise _Refused(404, f"this key speaks {key.request.client_wire}, not {route.wire}")
    if (field := policy.redirection(body)) is not None:
        raise _Refused(400, f"the field '{field}' is refused: a request may not choose its upstream")
    opened = key.opens(record.model, route.wire)
    if opened is None:
        known = ", ".join(key.models)
        raise _Refused(404, f"model '{record.model}' is not declared for this rollout. Declared: {known}")
    if not key.request.allow_provider_tools and (tool := policy.provider_tool(route.wire, body)) is not None:
        raise _Refused(400, f"'{tool}' is refused: without network, tools and content of the provider's side are off")
    if (used_up := key.over_budget()) is not None:
        raise _Refused(403, used_up, "budget")
    record.target = opened.target
    return opened


def _parsed(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw.decode("utf-8"), object_pairs_hook=policy.unique_keys)
    except policy.Duplicate as error:
        raise _Refused(400, f"the body is ambiguous: {error}") from None
    except (ValueError, RecursionError):
        raise _Refused(400, "the body is not JSON") from None
    if not isinstance(body, dict) or not body:
        raise _Refused(400, "the body is not a JSON object")
    return body


def _with_stream_usage(record: Recording) -> bytes | None:
    """The body of a chat stream with a usage event asked for; `None` where the client already said what it wants."""
    if record.route.wire != "chat" or not record.streamed:
        return None
    options = record.body.get("stream_options")
    if options is None and "stream_options" not in record.body:
        return record.raw.rstrip()[:-1] + b',"stream_options":{"include_usage":true}}'
    if isinstance(options, dict) and "include_usage" not in options:
        return json.dumps({**record.body, "stream_options": {**options, "include_usage": True}}).encode()
    return None


async def _stream(
    request: web.BaseRequest,
    upstream: aiohttp.ClientResponse,
    record: Recording,
    secret: bytes,
    without: UsageEventFilter | None,
) -> web.StreamResponse:
    """Each chunk goes on as it comes."""
    response = web.StreamResponse(status=upstream.status, headers=headers_back(upstream.headers))
    response.enable_chunked_encoding()
    await _open(request, response)
    try:
        async for chunk in upstream.content.iter_any():
            chunk = _without_secret(chunk, secret)
            record.keep(chunk)
            passed = without.feed(chunk) if without else chunk
            if passed:
                await _write(response, passed)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        record.failed("stream_cut", f"the provider's stream broke off: {_reason(error)}")
        if without and (rest := without.rest()):
            await _write(response, rest)
        return _cut(request, response)
    if without and (rest := without.rest()):
        await _write(response, rest)
    await _write(response, None)
    return response


async def _whole(
    request: web.BaseRequest, upstream: aiohttp.ClientResponse, record: Recording, secret: bytes
) -> web.StreamResponse:
    try:
        body = _without_secret(await upstream.read(), secret)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        said = f"the provider's answer broke off: {_reason(error)}"
        record.failed("stream_cut", said, 502)
        assert record.route.wire is not None
        return _error(record.route.wire, 502, said)
    record.keep(body)
    response = web.Response(status=upstream.status, body=body, headers=headers_back(upstream.headers))
    await _open(request, response)
    await _write(response, None)
    return response


async def _open(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """The headers go out now, not with the first byte of the body."""
    try:
        await response.prepare(request)
    except (ConnectionError, aiohttp.ClientError) as error:
        raise _ClientGone from error


async def _write(response: web.StreamResponse, chunk: bytes | None) -> None:
    """`None` ends the body."""
    try:
        await (response.write_eof() if chunk is None else response.write(chunk))
    except (ConnectionError, aiohttp.ClientError) as error:
        raise _ClientGone from error


def _cut(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """The client sees what happened: an answer that breaks off, not one that ends."""
    response.force_close()
    if request.transport is not None:
        request.transport.close()
    return response


def _without_secret(chunk: bytes, secret: bytes) -> bytes:
    """A server that echoes what it was sent must not tell the box the provider's key."""
    return chunk.replace(secret, _REDACTED) if secret and secret in chunk else chunk


def _models(key: Key, route: Route) -> web.StreamResponse:
    wire = key.request.client_wire
    found = model_list(wire, key.models, route.model)
    if found is None:
        return _error(wire, 404, f"model '{route.model}' is not declared for this rollout")
    return web.json_response(found)


def _error(wire: Wire, status: int, message: str) -> web.Response:
    return web.json_response(failures.error_body(wire, status, message), status=status)


def _reason(error: BaseException) -> str:
    """One line. aiohttp's own texts name hosts and ports, never headers."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
