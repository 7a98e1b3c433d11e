"""Connect's streams over HTTP: envelopes of a flag, a length and a message, the last one with how it ended."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web
from aiohttp.streams import StreamReader

__all__ = ["CONTENT_TYPE", "ConnectAnswer", "envelopes"]

CONTENT_TYPE = "application/connect+json"
_HEAD = struct.Struct(">BI")
_LAST = 2
_MOST = 64 << 20


async def envelopes(content: StreamReader) -> AsyncIterator[bytes]:
    """Messages of a request, as they arrive; `ValueError` for what is none."""
    data = b""
    while True:
        while len(data) >= _HEAD.size:
            flag, length = _HEAD.unpack(data[: _HEAD.size])
            if flag & ~_LAST or length > _MOST:
                raise ValueError(f"an envelope with flag {flag} and {length} bytes")
            end = _HEAD.size + length
            if len(data) < end:
                break
            yield data[_HEAD.size : end]
            data = data[end:]
        more = await content.readany()
        if not more:
            if data:
                raise ValueError("a stream that ends within an envelope")
            return
        data += more


class ConnectAnswer:
    """The answer to a streaming call."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})

    async def open(self) -> None:
        await self._response.prepare(self._request)

    async def send(self, message: Any) -> None:
        data = message.to_json().encode()
        await self._response.write(_HEAD.pack(0, len(data)) + data)

    def cut(self) -> web.StreamResponse:
        """The connection breaks."""
        if self._request.transport is not None:
            self._request.transport.abort()
        return self._response

    async def close(self, code: str = "", text: str = "") -> web.StreamResponse:
        last = {"error": {"code": code, "message": text}} if code else {}
        data = json.dumps(last).encode()
        await self._response.write(_HEAD.pack(_LAST, len(data)) + data)
        await self._response.write_eof()
        return self._response
