"""What a driver serves into a box: an ASGI application, asked by a real HTTP client over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from typing import Any

import pytest
from benchflow_wires.asgi import serve_app

from benchflow_core.errors import InfrastructureError


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what it got; `/stream` in three pieces, `/fail` not at all, `/deaf` without reading the body."""
    if scope["type"] != "http":
        raise NotImplementedError
    if scope["path"] == "/fail":
        raise KeyError("task")
    body, more = b"", scope["path"] != "/deaf"
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    said = {
        "method": scope["method"],
        "path": scope["path"],
        "query": scope["query_string"].decode(),
        "size": len(body),
    }
    await send({"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", b"application/json")]})
    if scope["path"] == "/stream":
        for part in (b"one ", b"", b"two "):
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})


def ask(port: int, requests: list[tuple[str, str, Any]]) -> list[tuple[int, bytes]]:
    """On one connection, where the server keeps it."""
    client, answers = http.client.HTTPConnection("127.0.0.1", port, timeout=20), []
    for method, path, body in requests:
        client.request(method, path, body, encode_chunked=hasattr(body, "__next__"))
        answer = client.getresponse()
        answers.append((answer.status, answer.read()))
    client.close()
    return answers


@contextlib.asynccontextmanager
async def running(app: Any = echo):
    heard: list[str] = []
    async with serve_app(app, "the application", heard.append) as endpoint:
        yield endpoint.port, heard


async def test_requests_of_every_shape_on_one_connection():
    async with running() as (port, heard):
        requests = [
            ("GET", "/a%20b?x=1", None),
            ("POST", "/big", b"x" * 300_000),
            ("POST", "/pieces", iter([b"ab", b"c" * 100_000])),
            ("HEAD", "/", None),
            ("GET", "/stream", None),
            ("POST", "/deaf", b"nobody reads this"),
        ]
        answers = await asyncio.to_thread(ask, port, requests)
    said = [json.loads(body.removeprefix(b"one two ")) for _, body in answers if body]
    assert [status for status, _ in answers] == [200] * 6 and answers[3][1] == b""
    assert (said[0]["path"], said[0]["query"]) == ("/a b", "x=1")
    assert [one["size"] for one in said] == [0, 300_000, 100_002, 0, 0]
    assert answers[4][1].startswith(b"one two {") and heard == []


async def test_an_application_that_raises_is_heard_of_and_goes_on():
    async with running() as (port, heard):
        assert await asyncio.to_thread(ask, port, [("GET", "/fail", None)]) == [(500, b"Internal Server Error")]
        assert (await asyncio.to_thread(ask, port, [("GET", "/", None)]))[0][0] == 200
    assert heard == ["KeyError: 'task'"]


async def test_closing_ends_requests_under_way_and_tells_the_application():
    told: list[str] = []
    asked = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for answer in ("startup", "shutdown"):
                told.append((await receive())["type"])
                await send({"type": f"lifespan.{answer}.complete"})
            return
        asked.set()
        await asyncio.Event().wait()

    async with running(app) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: box\r\n\r\n")
        await asked.wait()
    assert (await asyncio.wait_for(reader.read(), 10)).startswith(b"HTTP/1.1 500")
    writer.close()
    assert told == ["lifespan.startup", "lifespan.shutdown"]


async def test_an_application_that_does_not_start_is_an_error():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "lifespan.startup.failed", "message": "no data set"})

    with pytest.raises(InfrastructureError, match="did not start: no data set"):
        async with running(app):
            pass
