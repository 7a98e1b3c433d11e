"""Sending a recorded answer again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from benchflow_gateway_relay.recording import Recording
from benchflow_gateway_relay.replay import RecordedAnswer
from benchflow_gateway_relay.sending import send_stream, send_whole
from benchflow_gateway_relay.sse import UsageEventFilter, whole_events

__all__ = ["send_recorded"]


async def send_recorded(
    request: web.BaseRequest, record: Recording, found: RecordedAnswer, *, without_usage: bool
) -> web.StreamResponse:
    """The recorded bytes. An answer that broke off then breaks off now."""
    record.replayed, record.recorded = found.match, found.usage
    record.answered(found.status, found.content_type)
    headers = {"content-type": found.content_type}
    if not found.cut and not found.content_type.startswith("text/event-stream"):
        return await send_whole(request, record, found.status, headers, found.answer)
    without = UsageEventFilter() if without_usage else None
    return await send_stream(request, record, found.status, headers, _parts(found), without)


async def _parts(found: RecordedAnswer) -> AsyncIterator[bytes]:
    for event in whole_events(found.answer):
        yield event
        await asyncio.sleep(0)
    if found.cut:
        raise ConnectionResetError("as it did in the recording")
