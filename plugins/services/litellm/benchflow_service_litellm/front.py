"""The agents' side: the relay's own checks, keys and log; the request then goes to LiteLLM."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import aiohttp
from aiohttp import web
from benchflow_gateway_relay.admission import RequestRefused
from benchflow_gateway_relay.keys import KeyRing, OpenedModel
from benchflow_gateway_relay.passing import RequestForwarder, with_stream_usage
from benchflow_gateway_relay.paths import Route
from benchflow_gateway_relay.recording import Recording
from benchflow_gateway_relay.redaction import KeyFilter
from benchflow_gateway_relay.sending import error
from benchflow_gateway_relay.upstream import ProviderClient

from benchflow_core.contracts import ModelTarget, Wire
from benchflow_core.errors import BenchflowError
from benchflow_service_litellm.calls import AgentRequest, OpenRequests
from benchflow_service_litellm.pool import WorkerPool
from benchflow_service_litellm.settings import route_of, with_effort

__all__ = ["AgentSideProxy"]

_SETTLE = 2.0
_BEGIN = 600.0
"""Seconds for a provider's first sign, where LiteLLM gives its own before."""
_NOTICE = 0.2


class AgentSideProxy(RequestForwarder):
    """What the agent gets is LiteLLM's translation; what is recorded of it is what the provider said."""

    def __init__(
        self,
        keys: KeyRing,
        upstream: ProviderClient,
        calls: OpenRequests,
        pool: WorkerPool,
        start: Callable[[], Awaitable[None]],
        *,
        effort: str = "",
    ) -> None:
        """`effort`: what every request to Bedrock is made to ask for."""
        super().__init__(keys, upstream)
        self._start = start
        self._calls = calls
        self._pool = pool
        self._effort = effort
        self._by_record: dict[int, AgentRequest] = {}

    async def _answer(self, request: web.BaseRequest, record: Recording, opened: OpenedModel) -> web.StreamResponse:
        """The effort is put in here, so that the log has the request as it was sent."""
        if self._effort and route_of(opened.target) == "bedrock" and record.route.kind == "answer":
            record.body = with_effort(record.body, record.route.wire or "", self._effort)
            record.raw = json.dumps(record.body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return await super()._answer(request, record, opened)

    async def _forward(self, request: web.BaseRequest, record: Recording, opened: OpenedModel) -> web.StreamResponse:
        if record.route.kind == "count":
            return await self._count(request, record, opened)
        record.secondhand = True
        try:
            await self._start()
        except BenchflowError as error:
            raise RequestRefused(502, error.message, "provider_error") from error
        with self._calls.opened(record.key, opened) as call:
            self._by_record[id(record)] = call
            try:
                return await super()._forward(request, record, opened)
            finally:
                del self._by_record[id(record)]
                await call.settled(_SETTLE)
                record.truth = call.truth()

    async def _ask(
        self, request: web.BaseRequest, record: Recording, opened: OpenedModel
    ) -> tuple[aiohttp.ClientResponse, bool]:
        call = self._by_record[id(record)]
        marks = {"x-benchflow-call": call.id, "x-benchflow-route": route_of(opened.target)}
        assert record.route.wire is not None
        # A cloud that LiteLLM logs in to has no back of ours: what a stream used is known only from its own last event.
        asking = None if opened.target.auth in ("key", "bearer") else with_stream_usage(record)
        body = asking or record.raw
        for attempt in (1, 2):
            async with self._pool.worker() as worker:
                proxy = OpenedModel(_as_target(opened.target, record.route.wire, worker.url), self._pool.secret)
                try:
                    response = await self._upstream.post(
                        proxy, _as_route(record.route), body, request.headers, request.query, marks=marks
                    )
                except aiohttp.ClientConnectorError:
                    if attempt == 2:
                        raise
                    # It died a moment ago and never had the request: its supervisor is about to notice.
                    await asyncio.sleep(_NOTICE)
                else:
                    return response, asking is not None
        raise AssertionError("unreachable")

    async def _instead(self, record: Recording, upstream: aiohttp.ClientResponse) -> web.StreamResponse | None:
        """The provider's own no, not LiteLLM's account of it, which has another status more often than not."""
        call = self._by_record[id(record)]
        if upstream.status == 200 and call.opened.target.auth in ("key", "bearer"):
            await call.begun(_BEGIN)
        failure = call.failure()
        if failure is None or failure[1] < 400:
            return await super()._instead(record, upstream)
        conclusion, status, retry_after = failure
        assert conclusion.kind is not None and record.route.wire is not None
        record.failed(conclusion.kind, conclusion.message or "", status)
        headers = {"retry-after": retry_after} if retry_after else None
        return error(record.route.wire, status, conclusion.message or "", headers, ours=False)

    async def _count(self, request: web.BaseRequest, record: Recording, opened: OpenedModel) -> web.StreamResponse:
        """Tokens are counted by who knows how: the provider, where it speaks the same wire."""
        if opened.target.wire == record.route.wire and opened.target.auth in ("key", "bearer"):
            response, _ = await RequestForwarder._ask(self, request, record, opened)
            async with response:
                body = KeyFilter(opened.credential).whole(await response.read())
                return web.Response(status=response.status, body=body, content_type="application/json")
        assert record.route.wire is not None
        return error(record.route.wire, 404, "this provider does not count tokens beforehand")


def _as_route(route: Route) -> Route:
    """LiteLLM knows one version of Gemini's paths."""
    return replace(route, suffix=re.sub(r"^/v1(?:alpha)?/models/", "/v1beta/models/", route.suffix))


def _as_target(target: ModelTarget, wire: Wire, url: str) -> ModelTarget:
    """LiteLLM itself, seen as a provider."""
    return replace(target, wire=wire, base_url=f"{url}/v1" if wire in ("chat", "responses") else url, auth="bearer")
