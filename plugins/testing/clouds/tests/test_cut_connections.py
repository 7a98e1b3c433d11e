"""A client that goes away ends the wait for an answer, not the work: a request that is sent again must not do it twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from benchflow_testing_clouds.ledger import Ledger
from benchflow_testing_clouds.serving import listen


async def test_over_http() -> None:
    began, finished = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        await request.read()
        began.set()
        await asyncio.sleep(0.2)
        finished.set()
        return web.Response()

    app = web.Application()
    app.router.add_post("/", slow)
    runner, port = await listen(app)
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
    await began.wait()
    writer.transport.abort()
    async with asyncio.timeout(5):
        await finished.wait()
    await runner.cleanup()


async def test_over_grpc() -> None:
    pytest.importorskip("modal", reason="the Modal SDK is not installed")
    from google.protobuf.empty_pb2 import Empty
    from grpclib.client import Channel
    from grpclib.server import Server
    from modal_proto.api_grpc import ModalClientBase, ModalClientStub

    from benchflow_testing_clouds.modal.service import GrpcService

    began, finished = asyncio.Event(), asyncio.Event()

    class Slow(GrpcService):
        base = ModalClientBase

        def authorize(self, name: str, metadata: Any) -> None:
            """Anybody."""

        async def ClientHello(self, stream: Any, request: Any, fault: Any) -> None:
            began.set()
            await asyncio.sleep(0.2)
            finished.set()

    server = Server([Slow(Ledger())])
    await server.start("127.0.0.1", 0)
    port = server._server.sockets[0].getsockname()[1]
    async with Channel("127.0.0.1", port) as channel:
        asking = asyncio.ensure_future(ModalClientStub(channel).ClientHello(Empty()))
        await began.wait()
        asking.cancel()
        async with asyncio.timeout(5):
            await finished.wait()
    server.close()
    await server.wait_closed()
