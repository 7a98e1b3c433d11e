"""The providers' side: what LiteLLM makes of a request comes back here and gets the provider's key and address."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from secrets import compare_digest

import aiohttp
from aiohttp import web
from benchflow_gateway_relay import policy
from benchflow_gateway_relay.admission import ClientGone, RequestRefused, offered_secrets, parsed, read_body
from benchflow_gateway_relay.keys import KeyRing, OpenedModel
from benchflow_gateway_relay.passing import RequestForwarder
from benchflow_gateway_relay.paths import Route, find_route, wire_of_path
from benchflow_gateway_relay.recording import CLIENT_CLOSED, Recording
from benchflow_gateway_relay.sending import error
from benchflow_gateway_relay.upstream import ProviderClient

from benchflow_service_litellm.calls import AgentRequest, OpenRequests

__all__ = ["ProviderSideProxy"]

_PAIRS = (frozenset({"chat", "responses"}),)
"""Wires that a provider has at one address."""


class ProviderSideProxy(RequestForwarder):
    """Where LiteLLM believes its providers to be. It can reach only what the agent's own request opened."""

    def __init__(self, keys: KeyRing, upstream: ProviderClient, calls: OpenRequests, secret: str) -> None:
        super().__init__(keys, upstream)
        self._calls = calls
        self._secret = secret.encode()
        self._retry_after: dict[int, str] = {}
        self._calls_of: dict[int, AgentRequest] = {}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        route = find_route(request.method, request.path)
        wire = (route and route.wire) or wire_of_path(request.path)
        call = self._calls.get(request.headers.get("x-benchflow-call", ""))
        known = any(compare_digest(secret.encode(), self._secret) for secret in offered_secrets(request))
        if not known or call is None:
            return error(wire, 401, "this is not a request of a rollout")
        if route is None or route.kind != "answer":
            return error(wire, 404, f"{request.method} {request.path} is not open")
        with call.at_provider():
            return await self._carry(request, call, route)

    async def _carry(self, request: web.BaseRequest, call: AgentRequest, route: Route) -> web.StreamResponse:
        record = Recording(call.key, route, request.path)
        assert route.wire is not None
        self._calls_of[id(record)] = call
        try:
            record.raw = await read_body(request)
            opened = _admit(record, call)
            return await self._forward(request, record, opened)
        except RequestRefused as no:
            record.failed(no.kind, no.message, no.status)
            return error(route.wire, no.status, no.message)
        except asyncio.CancelledError:
            record.failed("client_gone", "the client went away")
            raise
        except ClientGone:
            record.failed("client_gone", "the client went away")
            return web.Response(status=CLIENT_CLOSED)
        finally:
            del self._calls_of[id(record)]
            call.ended(record.conclude(), record.status, self._retry_after.pop(id(record), ""))

    async def _instead(self, record: Recording, upstream: aiohttp.ClientResponse) -> web.StreamResponse | None:
        if "retry-after" in upstream.headers:
            self._retry_after[id(record)] = upstream.headers["retry-after"]
        if upstream.status == 200 and record.content_type.startswith("text/html"):
            # LiteLLM makes an empty answer of it, and a success.
            said = "the provider answered with a web page; check its base URL"
            record.failed("not_a_model_api", said, 502)
            assert record.route.wire is not None
            return error(record.route.wire, 502, said)
        if upstream.status < 300:
            self._calls_of[id(record)].answered.set()
        return await super()._instead(record, upstream)


def _admit(record: Recording, call: AgentRequest) -> OpenedModel:
    """The call's own model at its own provider, whatever LiteLLM asks for."""
    target, route = call.opened.target, record.route
    record.body = parsed(record.raw)
    asked = route.model if route.model is not None else record.body.get("model")
    record.model = asked if isinstance(asked, str) else None
    record.streamed = bool(record.body.get("stream")) if route.stream is None else route.stream
    same_address = any(target.wire in pair and route.wire in pair for pair in _PAIRS)
    if record.model != target.model or not (route.wire == target.wire or same_address):
        raise RequestRefused(
            400, f"LiteLLM asked for '{record.model}' on {route.wire}, which this request does not open"
        )
    assert route.wire is not None
    if not call.key.request.allow_provider_tools and (tool := policy.provider_tool(route.wire, record.body)):
        raise RequestRefused(
            400, f"'{tool}' is refused: without network, tools and content of the provider's side are off"
        )
    record.target = replace(target, wire=route.wire)
    return OpenedModel(record.target, call.opened.credential)
