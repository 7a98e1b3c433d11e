"""BenchFlow's agent as a harness of Verifiers 0.4: what it does passes through their interception, turn by turn."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
import verifiers.v1 as vf
from benchflow_worker import Conversation, flatten

__all__ = ["BenchflowHarness"]

ENDED = "The environment has ended this episode."
SAID: dict[str, dict[str, Any]] = {}
"""By trace: what the agent did last, for the endpoint in the place of a model to repeat."""


class AgentSession(vf.HarnessSession):
    """The turns of one seat."""

    conversation: Conversation | None = None

    async def _run(self, messages: Any = None) -> Any:
        play, talk, first = self.runtime.play, self.conversation, self.conversation is None
        if talk is None:
            self.history: list[Any] = []
            self.tools: list[dict[str, Any]] = []
            talk = self.conversation = Conversation(play, self.trace.agent.name)
            play.tools = self._mcp
        news = messages if messages is not None else self.data.prompt
        system = self.data.system_prompt if first else None
        if system:
            self.history.append({"role": "system", "content": system})
        for message in [{"role": "user", "content": news}] if isinstance(news, str) else news or []:
            self.history.append(message if isinstance(message, dict) else message.model_dump(exclude_none=True))
        kind, what = await talk.step(text=flatten(system, news))
        while kind == "call":
            response = await self._tool(*what)
            if response is None:  # a limit or a stop condition of theirs
                await talk.stop()
                return vf.ProgramResult(0, "", "")
            kind, what = await talk.step(result=response)
        if play.over == "agent_timeout":
            self.trace.record_timeout("agent")
        elif play.over:
            self.trace.stop(play.over)
        else:
            await self._commit({"role": "assistant", "content": what})
        return vf.ProgramResult(0, "", "")

    async def _commit(self, message: dict[str, Any]) -> bool:
        """As a model's turn: their limits and stop conditions may refuse it."""
        SAID[self.trace.id] = message
        body = {"model": self.ctx.model, "messages": self.history, **({"tools": self.tools} if self.tools else {})}
        async with httpx.AsyncClient(timeout=None) as client:
            answer = await client.post(
                f"{self.endpoint}/chat/completions", json=body, headers={"Authorization": f"Bearer {self.secret}"}
            )
        if answer.status_code == 200:
            self.history.append(message)
        return answer.status_code == 200

    async def _tool(self, server: str, request: dict[str, Any]) -> Any:
        params = request["params"]
        name = f"{server}_{params['name']}" if server else params["name"]
        call = {"name": name, "arguments": json.dumps(params.get("arguments") or {})}
        number = f"call_{uuid4().hex[:12]}"
        turn = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": number, "type": "function", "function": call}],
        }
        if not await self._commit(turn):
            return None
        response = await post(self.mcp_urls[server], request)
        content = (response.get("result") or {}).get("content") or []
        text = "\n".join(part.get("text", "") for part in content) or json.dumps(response.get("error") or "")
        self.history.append({"role": "tool", "tool_call_id": number, "content": text})
        return response

    async def _mcp(self, server: str, request: dict[str, Any]) -> Any:
        """Everything but a call goes to their server as it is; a call waits for its turn."""
        from benchflow_worker import failure

        if server not in self.mcp_urls:
            return failure(request, f"There is no tool server '{server}'.")
        if request.get("method") != "tools/call":
            response = await post(self.mcp_urls[server], request)
            if request.get("method") == "tools/list" and response:
                self._list(server, response)
            return response
        active = self.runtime.play.active()
        answer = None if active is None else await active.call((server, request))
        return answer or failure(request, ENDED)

    def _list(self, server: str, response: dict[str, Any]) -> None:
        for tool in (response.get("result") or {}).get("tools", []):
            name = f"{server}_{tool['name']}" if server else tool["name"]
            function = {"name": name, "description": tool.get("description") or "", "parameters": tool["inputSchema"]}
            if all(known["function"]["name"] != name for known in self.tools):
                self.tools.append({"type": "function", "function": function})


class BenchflowHarness(vf.Harness[vf.HarnessConfig]):
    """Prompts are put to BenchFlow's agent, in BenchFlow's box."""

    SUPPORTS_MCP = SUPPORTS_RESUME = APPENDS_SYSTEM_PROMPT = True
    NEEDS_CONTAINER = EXECUTES_CODE = False

    async def session(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
        tool_interception_url: str | None = None,
    ) -> AgentSession:
        return AgentSession(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, tool_interception_url)

    async def launch(self, *args: Any, **more: Any) -> Any:
        raise NotImplementedError("it is driven by its session")


async def post(url: str, request: dict[str, Any]) -> Any:
    headers = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(timeout=None) as client:
        answer = await client.post(url, json=request, headers=headers)
    text = answer.text
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        text = next((line[5:] for line in text.splitlines() if line.startswith("data:")), "")
    return json.loads(text) if text.strip() else None
