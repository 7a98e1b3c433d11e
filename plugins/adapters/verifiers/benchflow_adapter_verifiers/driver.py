"""The environment plays, in its own process; here are the agent and the box it asks for."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from benchflow_wires.asgi import serve_app

from benchflow_adapter_verifiers.process import EnvironmentWorker, Message
from benchflow_adapter_verifiers.source import environment_of, module_folder
from benchflow_adapter_verifiers.task import PORT
from benchflow_adapter_verifiers.verdict import VERDICT
from benchflow_core.contracts import Episode, TurnRecord
from benchflow_core.errors import AgentError, ConfigurationError, InfrastructureError, TaskError

__all__ = ["drive", "finish"]

_COMMAND: Final = 3600.0
_READ: Final = 64 << 20
_WRITE: Final = 'mkdir -p "$(dirname "$1")" && cat > "$1"'
_SAID: Final = "agent_message_chunk"
_INFRASTRUCTURE: Final = ("SandboxError", "InterceptionError", "TunnelError", "ProviderError", "Lost")
_plays: WeakKeyDictionary[Episode, Play] = WeakKeyDictionary()


async def drive(episode: Episode) -> None:
    """Prompt as the environment wants it, until it has given its verdict."""
    play = _plays[episode] = await _open(episode)
    try:
        async with contextlib.AsyncExitStack() as stack:
            if episode.task.environment.mcp_servers:
                app = serve_app(play.tools, "the environment's tools", play.tools_failed)
                await episode.serve(await stack.enter_async_context(app), port=PORT)
            play.start()
            await play.run()
    except asyncio.CancelledError:
        play.over = "agent_timeout"
        raise
    except AgentError:
        play.over = "agent_error"
        raise
    finally:
        if play.over is None and not play.decided:
            play.close()


async def finish(episode: Episode) -> None:
    """The verdict on what the agent left, where it failed or ran out of time too."""
    play = _plays.pop(episode, None)
    if play is None:
        return
    try:
        verdict = await play.verdict()
    finally:
        play.close()
    episode.note(VERDICT, verdict)
    if "error" not in verdict:
        episode.reward(verdict["reward"], source="verifiers")
        episode.report({key: verdict.get(key) for key in ("stop_condition", "turns")})


async def _open(episode: Episode) -> Play:
    meta, root = episode.task.metadata, episode.task.path.resolve().parent
    seats, roles = list(meta["seats"]), list(episode.roles)
    if len(seats) > 1 and (missing := [seat for seat in seats if seat not in roles]):
        raise ConfigurationError(
            f"task '{episode.task.name}' has the seats {', '.join(seats)}, and no role is named {missing[0]}.",
            remedy="Name a role for each seat in the config's scenes.",
        )
    spec = meta["spec"]
    worker = await EnvironmentWorker.of(environment_of(spec, root), module_folder(spec, root), tuple(spec["allow_env"]))
    return Play(episode, worker, dict(zip(seats, roles, strict=False)) if len(seats) == 1 else {s: s for s in seats})


class Play:
    """One episode, from this side."""

    def __init__(self, episode: Episode, worker: EnvironmentWorker, roles: Mapping[str, str]) -> None:
        self._episode, self._worker, self._roles = episode, worker, roles
        self._number = worker.number()
        self._prompts: asyncio.Queue[Message | None] = asyncio.Queue()
        self._verdict: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answering: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Task[TurnRecord] | None = None
        self._prompted = False
        self.over: str | None = None
        """Why the agent does not act any more, in the environment's words."""

    @property
    def decided(self) -> bool:
        return self._verdict.done()

    def start(self) -> None:
        meta = self._episode.task.metadata
        self._worker.plays[self._number] = self._hear
        self._worker.send({"play": self._number, "spec": meta["spec"], "task": meta["data"]})

    def close(self) -> None:
        self._worker.plays.pop(self._number, None)
        for task in self._answering:
            task.cancel()

    async def run(self) -> None:
        """Each prompt in its turn. What goes wrong before the first one is not the agent's doing."""
        while (asked := await self._prompts.get()) is not None:
            self._prompted = True
            self._turn = asyncio.create_task(self._episode.prompt(self._role(asked), asked["text"]))
            try:
                text = _reply(await self._turn)
            except asyncio.CancelledError:
                if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                    self._turn.cancel()
                    await asyncio.gather(self._turn, return_exceptions=True)
                    raise
                await self._episode.end_scene()  # the environment has ended the turn
                text = ""
            finally:
                self._turn = None
            self._answer(asked, {"text": text})
        error = self._verdict.result().get("error")
        if error and not self._prompted:
            raise _unplayed(error)

    async def verdict(self) -> Message:
        if self.over is not None and not self.decided:
            self._worker.send({"play": self._number, "over": self.over})
        return await self._verdict

    async def tools(self, scope: Mapping[str, Any], receive: Callable[[], Awaitable[Message]], send: Any) -> None:
        """Streamable HTTP as plain requests: `/NAME` is the environment's tool server of that name."""
        if scope["type"] != "http":
            raise NotImplementedError
        if scope["method"] != "POST":
            await _respond(send, 405, None)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        try:
            request = json.loads(body)
            assert isinstance(request, dict)
        except (ValueError, AssertionError):
            await _respond(
                send, 400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON object"}}
            )
            return
        response = await self._worker.ask_tool(self._number, scope["path"].strip("/"), request)
        await _respond(send, 202 if response is None else 200, response)

    def tools_failed(self, message: str) -> None:
        """Note what `tools` raised."""
        self._episode.note("driver_app_failed", {"message": message})

    def _role(self, asked: Message) -> str:
        return self._roles.get(asked["seat"]) or next(iter(self._roles.values()))

    def _hear(self, message: Message) -> None:
        if "lost" in message or "verdict" in message:
            if not self._verdict.done():
                if "lost" in message:
                    self._verdict.set_result({"error": {"type": "Lost", "message": str(message["lost"])}})
                else:
                    self._verdict.set_result(message["verdict"])
            self._stop_turn()
            self._prompts.put_nowait(None)
        elif message["what"] == "prompt":
            self._prompts.put_nowait(message)
        elif message["what"] == "cancel":
            self._stop_turn()
        else:
            task = asyncio.create_task(self._serve_box(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def _stop_turn(self) -> None:
        if self._turn is not None:
            self._turn.cancel()

    async def _serve_box(self, asked: Message) -> None:
        """A command or a file of the agent's box, for the environment's hooks."""
        try:
            self._answer(asked, await getattr(self, f"_{asked['what']}")(asked))
        except (OSError, InfrastructureError) as error:
            self._worker.send({**self._place(asked), "error": str(error)})

    async def _run(self, asked: Message) -> Message:
        done = await self._episode.sandbox.exec(
            asked["argv"], cwd=self._episode.workdir, env=asked["env"], user=asked["user"], timeout=_COMMAND
        )
        out, err = (data.decode("utf-8", "replace") for data in (done.stdout, done.stderr))
        return {"exit_code": done.exit_code, "stdout": out, "stderr": err}

    async def _read(self, asked: Message) -> str:
        limit = _READ if asked["limit"] is None else asked["limit"]
        done = await self._episode.sandbox.exec(
            ("head", "-c", str(limit), "--", asked["path"]),
            cwd=self._episode.workdir, user=asked["user"], timeout=_COMMAND, max_output=limit + 1024,
        )  # fmt: skip
        if done.exit_code != 0:
            raise OSError(f"{asked['path']} cannot be read: {done.stderr.decode('utf-8', 'replace').strip()[:400]}")
        return base64.b64encode(done.stdout).decode()

    async def _write(self, asked: Message) -> None:
        done = await self._episode.sandbox.exec(
            ("sh", "-c", _WRITE, "sh", asked["path"]),
            cwd=self._episode.workdir, user=asked["user"], stdin=base64.b64decode(asked["data"]), timeout=_COMMAND,
        )  # fmt: skip
        if done.exit_code != 0:
            raise OSError(f"{asked['path']} cannot be written: {done.stderr.decode('utf-8', 'replace').strip()[:400]}")

    def _answer(self, asked: Message, value: Any) -> None:
        self._worker.send({**self._place(asked), "value": value})

    def _place(self, asked: Message) -> Message:
        return {"play": self._number, "ask": asked["ask"]}


def _reply(record: TurnRecord) -> str:
    """What the agent said after its last tool call: its answer."""
    text = ""
    for event in record.events:
        kind, data = event.get("kind"), event.get("data") or {}
        if kind == "tool_call":
            text = ""
        elif kind == _SAID:
            content = data.get("content")
            text += str(content.get("text", "")) if isinstance(content, dict) else ""
    return text.strip()


def _unplayed(error: Mapping[str, str]) -> Exception:
    said = f"the environment could not begin: {error['type']}: {error['message']}"
    return InfrastructureError(said) if error["type"] in _INFRASTRUCTURE else TaskError(said)


async def _respond(send: Any, status: int, body: Message | None) -> None:
    headers = [(b"content-type", b"application/json")] if body is not None else []
    with contextlib.suppress(OSError):
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if body is None else json.dumps(body).encode()})
