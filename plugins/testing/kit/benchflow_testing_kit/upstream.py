"""A model provider for tests: chat completions over plain HTTP, with the faults a gateway must cope with."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["SECRET", "STREAM", "Upstream", "answer_to", "upstream"]

SECRET: Final = "provider-secret-1b9f"

STREAM: Final = (
    b'data: {"id":"s","object":"chat.completion.chunk","model":"kit-model-0613","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":"h\xc3\xa9"}}]}\n\n',
    b': odd spacing\n\ndata:{"id":"s","object":"chat.completion.chunk","model":"kit-model-0613","choices":'
    b'[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}]}\r\n\r\n',
    b'data: {"id":"s","object":"chat.completion.chunk","model":"kit-model-0613","choices":[],"usage":'
    b'{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\ndata: [DONE]\n\n',
)
"""What a streamed answer consists of, byte for byte."""

FAULTS: Final = {
    "rate-limit": (429, b'{"error": {"message": "slow  down", "type": "rate_limit"}}', "Retry-After: 17\r\n"),
    "broken": (503, b"<html>not even json</html>", ""),
    "bad-request": (400, b'{"error":{"message":"no such parameter"}}', ""),
}


@dataclass
class Upstream:
    """The running server: where it is, and what reached it."""

    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)
    redirect_to: str = ""
    pause: float = 0.0
    """Seconds between the parts of a stream."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))) or b"{}")
        self.requests.append(body)
        self.credentials.append(headers.get("authorization", ""))
        text = body["messages"][-1]["content"] if body.get("messages") else ""
        if self.redirect_to:
            _send(writer, 302, b"", f"Location: {self.redirect_to}\r\n")
        elif not headers.get("authorization", "").endswith(SECRET):
            _send(writer, 401, b'{"error":{"message":"bad key"}}')
        elif text in FAULTS:
            _send(writer, *FAULTS[text])
        elif body.get("stream"):
            await self._stream(writer)
        else:
            _send(writer, 200, answer_to(text))
        await writer.drain()
        return True

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in STREAM:
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(self.pause)
        writer.write(b"0\r\n\r\n")


def answer_to(text: str) -> bytes:
    """The body of an answer; its spacing is odd on purpose, so that re-encoding shows."""
    content = json.dumps(f"you said: {text}", ensure_ascii=False)
    return (
        '{"id":"c-1",  "object":"chat.completion","model":"kit-model-0613","choices":[{"index":0,'
        f'"finish_reason":"stop","message":{{"role":"assistant","content":{content}}}}}],\n'
        '"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}'
    ).encode()


def _send(writer: asyncio.StreamWriter, status: int, body: bytes, extra: str = "") -> None:
    head = f"HTTP/1.1 {status} Kit\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


@contextlib.asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    """Serves until the block ends."""
    state = Upstream()
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
