"""Runs in the environment's own Python: plays its tasks, and asks BenchFlow for the agent and the box.

One JSON object per line, both ways. `describe` prints the tasks and ends; without it, requests are served until
standard input ends. What the environment itself prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

Message = dict[str, Any]
Send = Callable[[Message], None]


class Play:
    """One episode: what it asks of BenchFlow, and the agent's tool calls on their way to the environment."""

    def __init__(self, number: int, send: Send) -> None:
        self.number, self._send, self._asked = number, send, 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        # async (server, request) -> response, once the environment serves tools
        self.tools: Callable[[str, Message], Coroutine[Any, Any, Any]] | None = None
        self.over: str | None = None  # why the agent will not act any more
        self.conversations: list[Conversation] = []

    async def ask(self, what: str, **data: Any) -> Any:
        self._asked += 1
        answer = self._waiting[self._asked] = asyncio.get_running_loop().create_future()
        self._send({"play": self.number, "ask": self._asked, "what": what, **data})
        return await answer

    def cancel(self) -> None:
        self._send({"play": self.number, "what": "cancel"})

    def answer(self, message: Message) -> None:
        future = self._waiting.pop(message["ask"], None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(OSError(message["error"]))
        else:
            future.set_result(message.get("value"))

    def end(self, why: str) -> None:
        self.over = why
        for conversation in self.conversations:
            conversation.end()

    async def mcp(self, server: str, request: Message) -> Any:
        if self.tools is None:
            return failure(request, "The environment serves no tools now.")
        return await self.tools(server, request)

    def active(self) -> Conversation | None:
        return next((one for one in self.conversations if one.turn is not None), None)


class Conversation:
    """The agent as a policy: each step ends with its next tool call, or with what it says at the end of its turn."""

    def __init__(self, play: Play, seat: str) -> None:
        self._play, self._seat = play, seat
        self._calls: asyncio.Queue[tuple[Any, asyncio.Future[Any]]] = asyncio.Queue()
        self.turn: asyncio.Future[Any] | None = None
        self._pending: asyncio.Future[Any] | None = None
        self.closed = False
        play.conversations.append(self)

    async def call(self, request: Any) -> Any:
        """A tool call of the agent's: waits until the environment has answered it; none where it has ended."""
        if self.closed:
            return None
        answer = asyncio.get_running_loop().create_future()
        self._calls.put_nowait((request, answer))
        return await answer

    async def stop(self) -> None:
        """The environment lets nothing more happen: the agent's turn ends now."""
        self.closed = True
        if self._pending is not None and not self._pending.done():
            self._pending.set_result(None)
        if self.turn is not None:
            self._play.cancel()
            await asyncio.wait({self.turn})
            self.turn = None

    async def step(self, text: str | None = None, result: Any = None) -> tuple[str, Any]:
        """`("call", request)` or `("say", text)`. A turn's first step has the prompt, the others the tool's result."""
        if self._play.over:
            return "say", ""
        if self.turn is None:
            self._calls = asyncio.Queue()
            self.turn = asyncio.ensure_future(self._play.ask("prompt", text=text, seat=self._seat))
        elif self._pending is not None:
            self._pending.set_result(result)
        self._pending = None
        call = asyncio.ensure_future(self._calls.get())
        try:
            await asyncio.wait({call, self.turn}, return_when=asyncio.FIRST_COMPLETED)
            if not self.turn.done():
                request, self._pending = call.result()
                return "call", request
            turn, self.turn = self.turn, None
            return "say", "" if turn.cancelled() else turn.result()["text"]
        except asyncio.CancelledError:  # the environment's own time limit
            self._play.cancel()
            raise
        finally:
            call.cancel()

    def end(self) -> None:
        """The agent is gone."""
        self.closed = True
        if self.turn is not None:
            self.turn.cancel()
        if self._pending is not None and not self._pending.done():
            self._pending.set_result(None)


def failure(request: Message, text: str) -> Message:
    """A tool result that says so."""
    content = [{"type": "text", "text": text}]
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": {"content": content, "isError": True}}


def flatten(system: str | None, prompt: Any) -> str:
    """One text for an agent that takes text: the system prompt and what the user says. Anything else is refused."""
    parts = [system] if system else []
    for message in [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt or []:
        message = message if isinstance(message, dict) else message.model_dump()
        content, role = message.get("content"), message.get("role")
        if role not in ("system", "user"):
            raise ValueError(f"a prompt with a message of role '{role}' cannot be put to an agent")
        if not isinstance(content, str):
            kinds = {part.get("type", "?") for part in content or []} - {"text"}
            if kinds or content is None:
                raise ValueError(f"a prompt with {', '.join(sorted(kinds)) or 'no content'} cannot be put to an agent")
            content = "\n".join(part["text"] for part in content)
        parts.append(content)
    return "\n\n".join(part for part in parts if part)


def told(error: object) -> Message:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return {"type": type(error).__name__, "message": (lines[-1] if lines else "no reason given")[:1000]}


async def serve(send: Send) -> None:
    plays: dict[int, Play] = {}
    running: set[asyncio.Future[Any]] = set()
    games: dict[str, asyncio.Future[Any]] = {}
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 28)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)

    async def play(message: Message) -> None:
        number, spec = message["play"], message["spec"]
        key = json.dumps(spec, sort_keys=True)
        try:
            if key not in games:
                games[key] = asyncio.ensure_future(import_module(spec["player"]).open_game(spec))
            send({"play": number, "verdict": await (await games[key]).play(plays[number], message["task"])})
        except Exception as error:
            games.pop(key, None) if key in games and games[key].done() and games[key].exception() else None
            send({"play": number, "verdict": {"error": told(error)}})
        finally:
            plays.pop(number, None)

    async def mcp(message: Message) -> None:
        one = plays.get(message["play"])
        request = message["request"]
        try:
            response = (
                failure(request, "The episode is over.") if one is None else await one.mcp(message["server"], request)
            )
        except Exception as error:
            response = failure(request, f"The tool failed: {told(error)['message']}")
        send({"mcp": message["mcp"], "response": response})

    def start(work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        running.add(task)
        task.add_done_callback(running.discard)

    while line := await reader.readline():
        message = json.loads(line)
        if "task" in message:
            plays[message["play"]] = Play(message["play"], send)
            start(play(message))
        elif "mcp" in message:
            start(mcp(message))
        elif (one := plays.get(message["play"])) is not None:
            one.end(message["over"]) if "over" in message else one.answer(message)


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(message: Message) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    if sys.argv[1:] == ["describe"]:
        spec = json.loads(sys.stdin.readline())
        try:
            send(import_module(spec["player"]).describe(spec))
        except (Exception, SystemExit) as error:
            send({"error": told(error)})
        return
    asyncio.run(serve(send))


if __name__ == "__main__":
    main()
