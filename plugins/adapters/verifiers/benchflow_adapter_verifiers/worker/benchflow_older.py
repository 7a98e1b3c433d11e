"""Verifiers up to 0.3.1: environments that `load_environment` makes, with BenchFlow's agent in the place of a model."""

from __future__ import annotations

import json
import time
from typing import Any
from uuid import uuid4

import verifiers.legacy as vf
from benchflow_worker import Conversation, Play, failure, flatten, told
from verifiers.legacy.clients import Client
from verifiers.legacy.types import Response, ResponseMessage, ToolCall

ENDED = "The environment has ended this episode."
_PROTOCOL = "2025-06-18"


def describe(spec: dict[str, Any]) -> dict[str, Any]:
    env = vf.load_environment(spec["id"], **spec["args"])
    if not isinstance(env, vf.MultiTurnEnv):
        raise ValueError(f"its environment is a {type(env).__name__}, which does not play turns")
    if env.requires_group_rollouts:
        raise ValueError("it scores several rollouts against each other, which one rollout cannot do")
    rows = env.get_eval_dataset(-1 if spec["limit"] is None else spec["limit"])
    tasks = [_task(dict(row), number) for number, row in enumerate(rows)]
    from verifiers import __version__

    return {"tasks": tasks, "tools": ["tools"] if env.tool_defs else [], "seats": ["agent"], "version": __version__}


def _task(row: dict[str, Any], number: int) -> dict[str, Any]:
    row.setdefault("example_id", number)
    try:
        return {"data": row, "instruction": flatten(None, row.get("prompt"))}
    except ValueError as error:
        raise ValueError(f"task {number}: {error}") from None


async def open_game(spec: dict[str, Any]) -> Game:
    return Game(vf.load_environment(spec["id"], **spec["args"]))


class Game:
    """One environment, loaded once; each play has a policy of its own."""

    def __init__(self, env: Any) -> None:
        self._env = env

    async def play(self, play: Play, data: dict[str, Any]) -> dict[str, Any]:
        policy = PolicyClient(self._env, play)
        play.tools = policy.mcp
        state = await self._env.rollout(data, policy, "agent", {})
        await policy.stop()
        if state.get("error") is not None:
            return {"error": told(state["error"])}
        await self._env.rubric.score_rollout(state)
        await self._env.rubric.cleanup(state)
        return {
            "reward": state["reward"],
            "metrics": state["metrics"] or {},
            "stop_condition": state.get("stop_condition"),
            "turns": len(state["trajectory"]),
        }


class PolicyClient(Client):
    """The agent where a model's client is expected: a step of its turn is a response."""

    def __init__(self, env: Any, play: Play) -> None:
        super().__init__(None)
        self._env, self._play, self._talk, self._seen = env, play, Conversation(play, "agent"), 0

    async def get_response(
        self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, state: Any = None, **more: Any
    ) -> Any:
        news, self._seen = prompt[self._seen :], len(prompt) + 1
        if self._talk.turn is not None:
            kind, what = await self._talk.step(result="\n".join(_text(message) for message in news))
        else:
            kind, what = await self._talk.step(text=flatten(None, news))
        if self._play.over:
            raise TimeoutError(self._play.over)  # what they end a rollout with, and score
        calls = [_call(what)] if kind == "call" else None
        message = ResponseMessage(
            content=None if calls else what,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            is_truncated=False,
        )
        return Response(id=uuid4().hex, created=int(time.time()), model="agent", message=message)

    async def mcp(self, server: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """The few methods a client of tools needs."""
        method, number = request.get("method"), request.get("id")
        if number is None:
            return None
        result: dict[str, Any] = {}
        if method == "initialize":
            version = (request.get("params") or {}).get("protocolVersion", _PROTOCOL)
            info = {"name": "tools", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/list":
            tools = self._env.tool_defs
            result = {
                "tools": [{"name": t.name, "description": t.description, "inputSchema": t.parameters} for t in tools]
            }
        elif method == "tools/call":
            text = await self._talk.call(request) if self._talk.turn is not None else None
            if text is None:
                ended: dict[str, Any] = failure(request, ENDED)
                return ended
            result = {"content": [{"type": "text", "text": text}], "isError": False}
        elif method != "ping":
            return {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": f"no method '{method}'"}}
        return {"jsonrpc": "2.0", "id": number, "result": result}

    async def stop(self) -> None:
        await self._talk.stop()

    async def close(self) -> None:
        pass

    def _unused(self, *args: Any, **more: Any) -> Any:
        raise NotImplementedError("get_response is all there is")

    setup_client = to_native_tool = to_native_prompt = get_native_response = _unused
    raise_from_native_response = from_native_response = _unused


def _call(request: dict[str, Any]) -> Any:
    params = request["params"]
    arguments = json.dumps(params.get("arguments") or {})
    return ToolCall(id=f"call_{uuid4().hex[:12]}", name=params["name"], arguments=arguments)


def _text(message: Any) -> str:
    content = message.content if hasattr(message, "content") else message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or [])
