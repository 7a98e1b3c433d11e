"""Putting an answer on the wire: whole or streamed, late, cut off, or not an answer at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace

from aiohttp import web

from benchflow_testing.neutral import ModelAnswer
from benchflow_testing.paths import Target
from benchflow_testing.script import Step
from benchflow_testing.wires.gemini import GEMINI, chunks

__all__ = ["send"]

_PAGE = "<!doctype html><html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n"


async def send(
    request: web.BaseRequest, target: Target, step: Step, answer: ModelAnswer, *, streamed: bool
) -> web.StreamResponse:
    """Everything a step says about how it is said."""
    if step.delay:
        await asyncio.sleep(step.delay)
    if step.html:
        return web.Response(text=_PAGE, content_type="text/html", status=step.status or 200)
    if step.status is not None:
        headers = {} if step.retry_after is None else {"retry-after": f"{step.retry_after:g}"}
        said = target.wire.error(step.status, step.error, step.code)
        return web.json_response(said, status=step.status, headers=headers)
    if streamed and target.wire is GEMINI and request.query.get("alt") != "sse":
        return await _body(request, step, "application/json", [json.dumps(chunks(answer)).encode()])
    if streamed:
        return await _body(request, step, "text/event-stream", target.wire.events(answer))
    whole = json.dumps(target.wire.whole(answer)).encode()
    if step.cut is not None or step.first_byte:
        half = len(whole) // 2
        step = step if step.cut is None else replace(step, cut=min(step.cut, 1))
        return await _body(request, step, "application/json", [whole[:half], whole[half:]])
    return web.Response(body=whole, content_type="application/json")


async def _body(request: web.BaseRequest, step: Step, content_type: str, parts: Iterable[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": content_type, "cache-control": "no-cache"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    if step.first_byte:
        await asyncio.sleep(step.first_byte)
    for number, part in enumerate(parts, 1):
        if step.cut is not None and number > step.cut:
            return _cut(request, response)
        await response.write(part)
        if step.chunk_delay:
            await asyncio.sleep(step.chunk_delay)
    await response.write_eof()
    return response


def _cut(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """What was written still goes out; the end of the body never does."""
    if request.transport is not None:
        request.transport.close()
    response.force_close()
    return response
