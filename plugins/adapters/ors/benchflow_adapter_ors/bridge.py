"""The tools of an episode as an MCP server. Rewards and the end of the episode stay on this side of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from benchflow_adapter_ors.episode import CallRefused, OrsEpisode, ToolOutput
from benchflow_core.errors import BenchflowError, TaskError

__all__ = ["Bridge"]

_OVER: Final = "The episode is over: no more calls are taken. End your turn."
_BROKEN: Final = "The environment has failed: no more calls are taken. End your turn."


class Bridge:
    """Carries calls to the episode, one at a time and in the order they come."""

    def __init__(
        self,
        episode: OrsEpisode,
        tools: Sequence[Mapping[str, Any]],
        paid: Callable[[float, str, int], None],
        note: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """`paid` hears each reward with the tool and the number of the call, `note` what came of each call."""
        self._episode, self._tools, self._paid, self._note = episode, tools, paid, note
        self._one_at_a_time = asyncio.Lock()
        self.calls = 0
        self.finished = False
        self.failed: asyncio.Future[BenchflowError] = asyncio.get_running_loop().create_future()
        """Done when the environment broke: what it paid so far is then no score."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput | CallRefused:
        """After the end, and after a failure, nothing reaches the environment: so it can pay nothing for it either."""
        async with self._one_at_a_time:
            if self.finished or self.failed.done():
                return CallRefused(_OVER if self.finished else _BROKEN)
            self.calls += 1
            try:
                found = await self._episode.call(name, arguments)
            except BenchflowError as error:
                self.failed.set_result(error)
                self._note({"tool": name, "call": self.calls, "failed": error.message})
                return CallRefused(_BROKEN)
            self._record(name, found)
            return found

    def _record(self, name: str, found: ToolOutput | CallRefused) -> None:
        row: dict[str, Any] = {"tool": name, "call": self.calls}
        if isinstance(found, CallRefused):
            self.finished = found.over
            self._note({**row, "refused": found.error[:500], "finished": found.over})
            return
        self.finished = found.finished
        self._note({**row, "reward": found.reward, "finished": found.finished})
        if found.reward is not None:
            self._paid(found.reward, name, self.calls)

    def app(self) -> Callable[..., Awaitable[None]]:
        """Only the box that it is shown to reaches it, and at a port of its own: a Host header proves nothing here."""
        server: Server[Any] = Server("environment", on_list_tools=self._list, on_call_tool=self._called)
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        return server.streamable_http_app(transport_security=security)

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(tool, self._episode) for tool in self._tools])

    async def _called(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in {tool["name"] for tool in self._tools}:
            found: ToolOutput | CallRefused = CallRefused(f"There is no tool '{params.name[:100]}'.")
        else:
            found = await self.call(params.name, params.arguments or {})
        if isinstance(found, CallRefused):
            return types.CallToolResult(content=[types.TextContent(type="text", text=found.error)], is_error=True)
        return types.CallToolResult(content=[_content(block) for block in found.blocks])


def _tool(tool: Mapping[str, Any], episode: OrsEpisode) -> types.Tool:
    schema = tool.get("input_schema") or {"type": "object", "properties": {}}
    try:
        return types.Tool(name=tool["name"], description=tool.get("description") or "", input_schema=schema)
    except ValueError:
        raise TaskError(f"{episode.place}: tool '{tool['name']}' has no schema that can be read.") from None


def _content(block: Mapping[str, Any]) -> Any:
    if block["type"] == "image":
        return types.ImageContent(type="image", data=block["data"], mime_type=block["mimeType"])
    return types.TextContent(type="text", text=block["text"])
