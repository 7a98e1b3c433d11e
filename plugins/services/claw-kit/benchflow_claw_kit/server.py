"""The process: an ASGI application on uvicorn, one worker thread behind it. A request is one transaction, in order.

Without Starlette: what it would add here are a dozen lines less, for five more packages in each box.
"""

from __future__ import annotations

import asyncio
import gzip
import signal
import socket
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

import uvicorn

from benchflow_claw_kit.admin import PREFIX, Admin
from benchflow_claw_kit.dispatch import Dispatcher
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.http import Request, Response, json_response, split_target
from benchflow_claw_kit.service import Service
from benchflow_claw_kit.store import Store

__all__ = ["ClawApp", "serve"]

HARD_LIMIT = 80 * 1024 * 1024
"""Read no more than this into memory; the rest of a larger body is read and thrown away, and the answer is 413."""
LARGE = 1024 * 1024
AT_ONCE = 2
"""Bodies above LARGE that are held at the same time; more wait unread. Else a few clients could fill the memory."""
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def serve(app: ClawApp, listener: socket.socket) -> None:
    """Answer until SIGTERM or SIGINT; then requests under way have a second to finish, and the database is closed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(
            number, lambda *_: None
        )  # uvicorn raises it again at the end: a stop that was asked for is no failure
    config = uvicorn.Config(
        app,
        http="h11",
        loop="asyncio",
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=24 * 3600,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=128 * 1024,
    )
    uvicorn.Server(config).run(sockets=[listener])


class ClawApp:
    def __init__(
        self,
        service: Service,
        store: Store,
        *,
        mcp: bool = True,
        admin_token: str | None = None,
        require_auth: bool = False,
    ) -> None:
        self.service = service
        self.store = store
        self.dispatcher = Dispatcher(service, store, require_auth)
        self.admin = Admin(service, store, admin_token)
        self.admin.keep_base()
        self.mcp: Callable[[Request], Response] | None = None
        if mcp:
            from benchflow_claw_kit.mcp import ToolServer

            self.mcp = ToolServer(self.dispatcher)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="claw")
        self._large = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = (await receive())["type"]
            if event == "lifespan.shutdown":
                self._worker.shutdown(wait=True)
                self.store.close()
            await send({"type": event + ".complete"})
            if event == "lifespan.shutdown":
                return

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        request = _request(scope)
        async with AsyncExitStack() as held:
            try:
                body = await _body(request, receive, lambda: held.enter_async_context(self._large))
                if body is None:
                    response = self.service.render_error(self.service.too_large, request)
                else:
                    request.body = body
                    response = await self._respond(request)
            except ConnectionError:
                return
            except ApiError as error:
                response = self.service.render_error(error, request)
            request.body = body = b""
        await _send(send, _zipped(request, response), head=request.method == "HEAD")

    async def _respond(self, request: Request) -> Response:
        if request.path == "/health":
            facts = {"status": "ok", "service": self.service.name, "scenario": self.store.get_meta("scenario") or None}
            return json_response(facts, pretty=False)
        answer: Callable[[Request], Response] = self.dispatcher
        if request.path == PREFIX or request.path.startswith(PREFIX + "/"):
            answer = self.admin
        elif request.path == "/mcp" and self.mcp:
            answer = self.mcp
        return await asyncio.get_running_loop().run_in_executor(self._worker, answer, request)


def _request(scope: Message) -> Request:
    target = scope["raw_path"] + b"?" + scope["query_string"]
    try:
        path, query = split_target(target.decode("latin-1"))
    except ValueError:
        path, query = split_target(scope["raw_path"].decode("latin-1"))
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return Request(scope["method"], path, query, headers)


async def _body(request: Request, receive: Receive, turn: Callable[[], Awaitable[object]]) -> bytes | None:
    """None: too large. `turn` is awaited once before a large body is read on."""
    chunks: list[bytes] = []
    size, waited = 0, False
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > LARGE and not waited:
            waited = True
            await turn()
        if size <= HARD_LIMIT:
            chunks.append(chunk)
        else:
            chunks.clear()
        if not message.get("more_body"):
            break
    if size > HARD_LIMIT:
        return None
    body = b"".join(chunks)
    chunks.clear()
    return _unzipped(body) if request.header("content-encoding").lower() == "gzip" else body


def _unzipped(body: bytes) -> bytes | None:
    machine = zlib.decompressobj(wbits=31)
    try:
        plain = machine.decompress(body, HARD_LIMIT + 1)
    except zlib.error:
        raise ApiError(400, "Bad Request: the body is not valid gzip.", "badRequest") from None
    return plain if len(plain) <= HARD_LIMIT else None


def _zipped(request: Request, response: Response) -> Response:
    if len(response.body) < 1024 or "gzip" not in request.header("accept-encoding"):
        return response
    if not response.headers.get("Content-Type", "").startswith(("application/json", "text/", "multipart/mixed")):
        return response
    body = gzip.compress(response.body, 1, mtime=0)
    return Response(response.status, body, {**response.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"})


async def _send(send: Send, response: Response, head: bool = False) -> None:
    headers = [(name.lower().encode(), _one_line(value)) for name, value in response.headers.items()]
    if response.status not in (204, 304):
        headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else response.body})


def _one_line(value: str) -> bytes:
    """A header cannot carry line ends or other alphabets."""
    return "".join(c if " " <= c < "\x7f" or c == "\t" else "?" for c in value).encode()
