"""The way back to the client: streams chunk by chunk, whole answers, errors in the words of the wire."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping

import aiohttp
from aiohttp import web

from benchflow_core.contracts import Wire
from benchflow_gateway_relay import failures
from benchflow_gateway_relay.admission import ClientGone
from benchflow_gateway_relay.recording import Recording
from benchflow_gateway_relay.sse import UsageEventFilter
from benchflow_gateway_relay.upstream import BROKEN

__all__ = ["error", "reason", "send_stream", "send_whole"]


async def send_stream(
    request: web.BaseRequest,
    record: Recording,
    status: int,
    headers: Mapping[str, str],
    chunks: AsyncIterable[bytes],
    without: UsageEventFilter | None,
) -> web.StreamResponse:
    """Each chunk goes on as it comes. What breaks on the other side breaks here too."""
    response = web.StreamResponse(status=status, headers=headers)
    response.enable_chunked_encoding()
    await _open(request, response)
    try:
        async for chunk in chunks:
            record.keep(chunk)
            passed = without.feed(chunk) if without else chunk
            if passed:
                await _write(response, passed)
    except BROKEN as broken:
        record.failed("stream_cut", f"the provider's stream broke off: {reason(broken)}")
        if without and (rest := without.rest()):
            await _write(response, rest)
        return _cut(request, response)
    if without and (rest := without.rest()):
        await _write(response, rest)
    await _write(response, None)
    return response


async def send_whole(
    request: web.BaseRequest, record: Recording, status: int, headers: Mapping[str, str], body: bytes
) -> web.StreamResponse:
    record.keep(body)
    response = web.Response(status=status, body=body, headers=headers)
    await _open(request, response)
    await _write(response, None)
    return response


async def _open(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """The headers go out now, not with the first byte of the body."""
    try:
        await response.prepare(request)
    except (ConnectionError, aiohttp.ClientError) as gone:
        raise ClientGone from gone


async def _write(response: web.StreamResponse, chunk: bytes | None) -> None:
    """`None` ends the body."""
    try:
        await (response.write_eof() if chunk is None else response.write(chunk))
    except (ConnectionError, aiohttp.ClientError) as gone:
        raise ClientGone from gone


def _cut(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """The client sees what happened: an answer that breaks off, not one that ends."""
    response.force_close()
    if request.transport is not None:
        request.transport.close()
    return response


def error(
    wire: Wire, status: int, message: str, headers: Mapping[str, str] | None = None, *, ours: bool = True
) -> web.Response:
    """`ours`: the gateway says it of itself, and says that too."""
    said = f"benchflow gateway: {message}" if ours else message
    return web.json_response(failures.error_body(wire, status, said), status=status, headers=headers)


def reason(problem: BaseException) -> str:
    """One line. aiohttp's own texts name hosts and ports, never headers."""
    return f"{type(problem).__name__}: {problem}".splitlines()[0][:300]
