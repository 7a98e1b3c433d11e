"""The server: picks a step for each request and says it on the wire it came by, faults included."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from benchflow_testing.faults import Faults
from benchflow_testing.neutral import ModelAnswer, Tokens
from benchflow_testing.paths import Target, find, model_list, token_count, wire_of
from benchflow_testing.script import AUX, Script, Step
from benchflow_testing.sending import send
from benchflow_testing.tools import NoSuchTool, resolve

__all__ = ["LocalModel", "Seen"]

_MAX_BODY = 256 * 1024 * 1024


@dataclass
class Seen:
    """One request as it arrived, and how it went."""

    method: str
    path: str
    """With the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    time: float = field(default_factory=time.time)
    wire: str = ""
    """`chat`, `responses`, `messages`, `gemini`; empty for anything else."""
    body: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    stream: bool = False
    scenario: str = ""
    """The script's name for it; `aux` for a title, a summary or structured output."""
    step: int = 0
    tools: tuple[str, ...] = ()
    """What the agent offered."""
    calls: tuple[str, ...] = ()
    """What was called."""
    tokens: Tokens | None = None
    status: int | None = None
    """What was answered; `None` while it has not been."""
    client_gone: bool = False
    """The client went away before it had everything."""

    @property
    def credential(self) -> str | None:
        """The key it came with, whichever way the wire carries it."""
        given = self.headers.get("authorization", "")
        bearer = given[7:] if given.lower().startswith("bearer ") else None
        query = next((p[4:] for p in self.path.partition("?")[2].split("&") if p.startswith("key=")), None)
        return bearer or self.headers.get("x-api-key") or self.headers.get("x-goog-api-key") or query


class LocalModel:
    """A model server on loopback. `async with` serves from the running loop, `with` from a thread of its own."""

    def __init__(
        self,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        models: Iterable[str] = ("local-model",),
        known_only: bool = False,
        key: str | None = None,
        log_limit: int = 2000,
    ) -> None:
        """`known_only`: a model that is not listed is 404. `key`: any other credential is 401."""
        self.host = host
        self.port = port
        self.models = tuple(models)
        self.known_only = known_only
        self.key = key
        self.answers = Script()
        self.log: deque[Seen] = deque(maxlen=log_limit)
        """The latest requests, oldest first."""
        self._faults = Faults()
        self._runner: web.ServerRunner | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def base_url(self) -> str:
        """Without a version: `http://127.0.0.1:41217`."""
        return f"http://{self.host}:{self.port}"

    def script(self, name: str, steps: Iterable[Step | Mapping[str, Any] | str], *, prompt: str | None = None) -> None:
        """Add a scenario: a prompt with `[[fake:NAME]]`, or with the words of `prompt`, gets these steps."""
        self.answers.add(name, steps, prompt)

    def fault(self, step: Step | None = None, *, times: int = 1, aux: bool = False, **values: Any) -> None:
        """The next requests get this instead: `fault(status=529, times=2)`. Auxiliary ones only with `aux`."""
        self._faults.add(step or Step(**values), times, aux)

    def reset(self) -> None:
        """Empties the log and takes back faults that did not happen."""
        self.log.clear()
        self._faults = Faults()

    # --- running -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        # A client that goes away cancels its handler: `Seen.client_gone` depends on it.
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        started: list[BaseException | None] = []
        ready = threading.Event()

        async def serve() -> None:
            self._stop, self._loop = asyncio.Event(), asyncio.get_running_loop()
            try:
                await self.start()
                started.append(None)
            except BaseException as error:
                started.append(error)
                return
            finally:
                ready.set()
            await self._stop.wait()
            await self.stop()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), name="local-model", daemon=True)
        self._thread.start()
        ready.wait()
        if started[0] is not None:
            self._thread.join()
            raise started[0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None and self._stop is not None and self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    # --- one request -------------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await _read(request)
        seen = Seen(request.method, request.path_qs, {k.lower(): v for k, v in request.headers.items()})
        if request.path.startswith("/__"):
            return self._control(request.path, raw)
        self.log.append(seen)
        try:
            response = await self._answer(request, seen, raw)
        except asyncio.CancelledError:
            seen.client_gone = True
            raise
        except ConnectionError:  # raised on, it would be a traceback in the log of whoever holds the model
            seen.client_gone = True
            return web.Response(status=499)
        seen.status = response.status
        return response

    async def _answer(self, request: web.BaseRequest, seen: Seen, raw: bytes) -> web.StreamResponse:
        target = find(request.path) if request.method == "POST" else None
        wire = target.wire if target else wire_of(request.path, seen.headers)
        if self.key is not None and seen.credential != self.key:
            return web.json_response(wire.error(401, "the key is not valid", "invalid_api_key"), status=401)
        if target is None:
            found = model_list(request.path, self.models) if request.method in ("GET", "HEAD") else None
            if found is not None and "/models" in request.path:
                return web.json_response(found)
            return web.json_response(wire.error(404, f"no such path: {request.path}", None), status=404)
        seen.wire = wire.name
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            return web.json_response(wire.error(400, "the body is not JSON", None), status=400)
        seen.body, seen.model = body, target.model or body.get("model")
        seen.stream = bool(body.get("stream")) if target.stream is None else target.stream
        if target.kind == "count":
            return web.json_response(token_count(wire, len(raw)))
        if self.known_only and seen.model not in self.models:
            said = wire.error(404, f"the model {seen.model!r} does not exist", "model_not_found")
            return web.json_response(said, status=404)
        return await self._say(request, seen, target, raw)

    async def _say(self, request: web.BaseRequest, seen: Seen, target: Target, raw: bytes) -> web.StreamResponse:
        asked = target.wire.parse(seen.body)
        choice = self.answers.choose(asked)
        step = self._faults.take(choice.scenario == AUX) or choice.step
        seen.scenario, seen.step, seen.tools = choice.scenario, choice.index, tuple(asked.tools)
        try:
            calls = tuple(resolve(tool, asked.tools) for tool in step.tools)
        except NoSuchTool as error:
            return web.json_response(target.wire.error(400, f"local model: {error}", None), status=400)
        seen.calls = tuple(call.name for call in calls)
        seen.tokens = None if step.no_usage else _tokens(step, len(raw))
        options = seen.body.get("stream_options") or {}
        answer = ModelAnswer(
            model=step.model or str(seen.model),
            text=step.text,
            think=step.think,
            calls=calls,
            tokens=seen.tokens,
            stop=step.stop,
            stream_usage=bool(options.get("include_usage")),
        )
        return await send(request, target, step, answer, streamed=seen.stream)

    def _control(self, path: str, raw: bytes) -> web.StreamResponse:
        """For tests that run the server as a program."""
        if path == "/__health":
            return web.json_response({"ok": True})
        if path == "/__log":
            return web.json_response([_plain(seen) for seen in self.log])
        if path == "/__reset":
            self.reset()
        elif path == "/__script":
            self.answers.load(json.loads(raw))
        elif path == "/__fault":
            value = json.loads(raw)
            self.fault(Step.from_json(value["step"]), times=value.get("times", 1), aux=value.get("aux", False))
        else:
            return web.json_response({"error": f"no such control: {path}"}, status=404)
        return web.json_response({"ok": True})


async def _read(request: web.BaseRequest) -> bytes:
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > _MAX_BODY:
            raise web.HTTPRequestEntityTooLarge(_MAX_BODY, len(body))
    return bytes(body)


def _tokens(step: Step, size: int) -> Tokens:
    said = len(step.text) + len(json.dumps(list(step.tools)) if step.tools else "")
    guess = Tokens(max(1, size // 4), max(1, said // 4), 0, len(step.think) // 4)
    return replace(guess, **(step.usage or {}))


def _plain(seen: Seen) -> dict[str, Any]:
    """For `/__log`: everything but the credential's value."""
    tokens = seen.tokens and {name: getattr(seen.tokens, name) for name in Tokens.__slots__}
    hidden = {"authorization", "x-api-key", "x-goog-api-key"}
    headers = {k: "…" if k in hidden else v for k, v in seen.headers.items()}
    return {**vars(seen), "headers": headers, "tokens": tokens}
