"""Calls one tool of an MCP server over streamable HTTP, with the standard library alone."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

TYPE_CHECKING = False  # importing typing would cost a fifth of the start-up time
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

VERSION = "2025-06-18"


class McpClient:
    """A connection to one of the servers of `session/new`."""

    def __init__(self, server: dict[str, Any]) -> None:
        split = urlsplit(server["url"])
        make = http.client.HTTPSConnection if split.scheme == "https" else http.client.HTTPConnection
        self.path = split.path or "/"
        self.connection = make(split.netloc)
        self.headers = {pair["name"]: pair["value"] for pair in server.get("headers", ())}
        self.headers.update({"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
        self.number = 0
        info = {"name": "benchflow-scripted", "version": "1"}
        self.ask("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": info})
        self.headers["MCP-Protocol-Version"] = VERSION
        self.send({"method": "notifications/initialized"}).read()

    def has(self, tool: str) -> bool:
        return any(found["name"] == tool for found in self.ask("tools/list", {})["tools"])

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        response = self.send({"id": self.number, "method": method, "params": params})
        session = response.getheader("Mcp-Session-Id")
        if session:
            self.headers["Mcp-Session-Id"] = session
        for message in messages(response):
            if message.get("id") == self.number:
                if "error" in message:
                    raise OSError(message["error"].get("message", "no reason given"))
                result: dict[str, Any] = message["result"]
                return result
        raise OSError(f"{self.path} answered {method} with {response.status} and no result")

    def send(self, message: dict[str, Any]) -> Any:
        body = json.dumps(dict({"jsonrpc": "2.0"}, **message)).encode()
        self.connection.request("POST", self.path, body, self.headers)
        return self.connection.getresponse()


def messages(response: Any) -> Iterator[dict[str, Any]]:
    """One of plain JSON, or those of a stream of events, to its end: the connection is then free again."""
    if not response.getheader("Content-Type", "").startswith("text/event-stream"):
        text = response.read()
        if text:
            yield json.loads(text)
        return
    found = []
    for line in response:
        if line.startswith(b"data:") and line[5:].strip():
            found.append(json.loads(line[5:]))
    yield from found


def call_tool(servers: list[dict[str, Any]], step: dict[str, Any]) -> tuple[bool, str, dict[str, Any]]:
    """Whether it went well, the result's text, and the result: of the server that is named, or that has the tool."""
    tool, named = step["tool"], step.get("server")
    for server in servers:
        if server.get("type") != "http" or named not in (None, server["name"]):
            continue
        client = McpClient(server)
        if named or client.has(tool):
            result = client.call(tool, step.get("input", {}))
            text = "\n".join(block.get("text", "") for block in result.get("content", ()))
            return not result.get("isError"), text, result
    raise OSError("no MCP server over HTTP has the tool " + tool)
