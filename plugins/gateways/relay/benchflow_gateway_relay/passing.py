"""Passing one request through: check, forward, stream back, record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

from benchflow_core.contracts import Wire
from benchflow_gateway_relay.admission import ClientGone, RequestRefused, admit, offered_secrets, read_body
from benchflow_gateway_relay.keys import Key, KeyRing, OpenedModel
from benchflow_gateway_relay.paths import Route, find_route, model_list, wire_of_path
from benchflow_gateway_relay.recording import CLIENT_CLOSED, Recording
from benchflow_gateway_relay.redaction import KeyFilter
from benchflow_gateway_relay.replaying import send_recorded
from benchflow_gateway_relay.sending import error, reason, send_stream, send_whole
from benchflow_gateway_relay.sse import UsageEventFilter
from benchflow_gateway_relay.upstream import BROKEN, ProviderClient, headers_back

__all__ = ["RequestForwarder", "with_stream_usage"]


class RequestForwarder:
    """The request handler of the relay's server. A gateway that translates replaces `_ask` and `_instead`."""

    def __init__(self, keys: KeyRing, upstream: ProviderClient) -> None:
        self._keys = keys
        self._upstream = upstream
        self._without_stream_usage: set[str] = set()
        """Providers that refuse `stream_options`, by base URL."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        route = find_route(request.method, request.path)
        wire: Wire = (route and route.wire) or wire_of_path(request.path)
        key = self._keys.find(offered_secrets(request))
        if key is None:
            return error(wire, 401, "this key is not valid, or no longer")
        if route is None:
            return error(wire, 404, f"{request.method} {request.path} is not open: only model calls are")
        if route.kind == "models":
            return _models(key, route)
        with key.under_way(request.transport):
            return await self._pass(request, key, route)

    async def _pass(self, request: web.BaseRequest, key: Key, route: Route) -> web.StreamResponse:
        record = Recording(key, route, request.path)
        assert route.wire is not None
        try:
            record.raw = await read_body(request)
            opened = admit(record)
            return await self._answer(request, record, opened)
        except RequestRefused as no:
            record.failed(no.kind, no.message, no.status)
            return error(route.wire, no.status, no.message)
        except asyncio.CancelledError:
            kind = "revoked" if key.revoked else "client_gone"
            record.failed(kind, "the key was revoked" if key.revoked else "the client went away")
            raise
        except ClientGone:
            record.failed("client_gone", "the client went away")
            return web.Response(status=CLIENT_CLOSED)
        finally:
            record.finish()

    async def _answer(self, request: web.BaseRequest, record: Recording, opened: OpenedModel) -> web.StreamResponse:
        """From the key's recording where it holds this request, else from the provider."""
        replay = record.key.replay
        if replay is not None and record.route.kind == "answer":
            found, record.divergence = replay.find(record.route.wire, record.body)
            if found is not None:
                return await send_recorded(request, record, found, without_usage=with_stream_usage(record) is not None)
            if opened.target.credential_env and not opened.credential:
                raise RequestRefused(409, f"{record.divergence}, and there is no key to go on live", "replay_diverged")
        return await self._forward(request, record, opened)

    async def _forward(self, request: web.BaseRequest, record: Recording, opened: OpenedModel) -> web.StreamResponse:
        wire = record.route.wire
        assert wire is not None
        try:
            upstream, added = await self._ask(request, record, opened)
        except BROKEN as broken:
            late = isinstance(broken, TimeoutError) and not isinstance(broken, aiohttp.ConnectionTimeoutError)
            status = 504 if late else 502
            record.failed("provider_error" if late else "unreachable", reason(broken), status)
            return error(wire, status, f"the provider cannot be reached: {reason(broken)}")
        async with upstream:
            content_type = upstream.headers.get("content-type", "")
            record.answered(upstream.status, content_type)
            if (instead := await self._instead(record, upstream)) is not None:
                return instead
            hidden = KeyFilter(opened.credential)
            headers = headers_back(upstream.headers, hidden)
            if upstream.status == 200 and (record.streamed or content_type.startswith("text/event-stream")):
                without = UsageEventFilter() if added else None
                chunks = _chunks(upstream, hidden)
                return await send_stream(request, record, upstream.status, headers, chunks, without)
            try:
                body = hidden.whole(await upstream.read())
            except BROKEN as broken:
                said = f"the provider's answer broke off: {reason(broken)}"
                record.failed("stream_cut", said, 502)
                return error(wire, 502, said)
            return await send_whole(request, record, upstream.status, headers, body)

    async def _instead(self, record: Recording, upstream: aiohttp.ClientResponse) -> web.StreamResponse | None:
        """What the client gets in place of the answer whose headers are here."""
        if 300 <= upstream.status < 400:
            said = f"the provider answered with a redirect ({upstream.status}); check its base URL"
            record.failed("not_a_model_api", said, 502)
            assert record.route.wire is not None
            return error(record.route.wire, 502, said)
        return None

    async def _ask(
        self, request: web.BaseRequest, record: Recording, opened: OpenedModel
    ) -> tuple[aiohttp.ClientResponse, bool]:
        """The provider's response, and whether its usage event is ours and not the client's."""

        async def post(body: bytes) -> aiohttp.ClientResponse:
            return await self._upstream.post(opened, record.route, body, request.headers, request.query)

        base_url = opened.target.base_url
        body = with_stream_usage(record) if base_url not in self._without_stream_usage else None
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


def with_stream_usage(record: Recording) -> bytes | None:
    """The body of a chat stream with a usage event asked for; `None` where the client already said what it wants."""
    if record.route.wire != "chat" or not record.streamed:
        return None
    options = record.body.get("stream_options")
    if options is None and "stream_options" not in record.body:
        return record.raw.rstrip()[:-1] + b',"stream_options":{"include_usage":true}}'
    if isinstance(options, dict) and "include_usage" not in options:
        return json.dumps({**record.body, "stream_options": {**options, "include_usage": True}}).encode()
    return None


async def _chunks(upstream: aiohttp.ClientResponse, hidden: KeyFilter) -> AsyncIterator[bytes]:
    """Yield the stream without the key; what was held back goes out before the end, or before the error."""
    try:
        async for chunk in upstream.content.iter_any():
            if passed := hidden.feed(chunk):
                yield passed
    except BROKEN:
        if rest := hidden.rest():
            yield rest
        raise
    if rest := hidden.rest():
        yield rest


def _models(key: Key, route: Route) -> web.StreamResponse:
    wire = key.request.client_wire
    helper = (route.model,) if route.model is not None and key.opens(route.model) else ()
    found = model_list(wire, key.models + helper, route.model)
    if found is None:
        return error(wire, 404, f"model '{route.model}' is not declared for this rollout")
    return web.json_response(found)
