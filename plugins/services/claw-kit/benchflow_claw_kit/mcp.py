"""The service's tools as an MCP server: JSON-RPC over streamable HTTP, stateless, one JSON answer per request."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from benchflow_claw_kit.dispatch import Dispatcher
from benchflow_claw_kit.http import Request, Response, decode_json, json_response
from benchflow_claw_kit.service import Tool

__all__ = ["ToolServer"]

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05", "2025-11-25")


class JsonRpcError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ToolServer:
    def __init__(self, dispatcher: Dispatcher, version: str = "0.8") -> None:
        self.dispatcher = dispatcher
        self.version = version
        self.tools = {tool.name: tool for tool in dispatcher.service.tools}

    def __call__(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(405, b"", {"Allow": "POST"})
        try:
            message = decode_json(request.body)
        except (ValueError, UnicodeDecodeError):
            return _error(None, -32700, "Parse error", 400)
        if isinstance(message, list):
            answers = [answer for one in message if (answer := self._one(request, one)) is not None]
            return json_response(answers, pretty=False) if answers else Response(202)
        answer = self._one(request, message)
        return json_response(answer, pretty=False) if answer is not None else Response(202)

    def _one(self, request: Request, message: Any) -> dict[str, Any] | None:
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if isinstance(message, dict) and ("result" in message or "error" in message):
                return None
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Invalid Request"}}
        if "id" not in message:
            return None
        parameters = message.get("params")
        try:
            result = self._result(request, message["method"], parameters if isinstance(parameters, dict) else {})
        except JsonRpcError as error:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": error.code, "message": str(error)}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _result(self, request: Request, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            asked = parameters.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": self.dispatcher.service.program, "version": self.version},
            }
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": [_described(tool) for tool in self.tools.values()]}
        if method == "tools/call":
            return self._call(request, parameters)
        raise JsonRpcError(-32601, f"Method not found: {method}")

    def _call(self, request: Request, parameters: dict[str, Any]) -> dict[str, Any]:
        tool = self.tools.get(str(parameters.get("name")))
        if tool is None:
            raise JsonRpcError(-32602, f"Unknown tool: {parameters.get('name')}")
        sent = parameters.get("arguments")
        arguments = dict(sent) if isinstance(sent, dict) else {}
        missing = [name for name in tool.required if name not in arguments]
        unknown = [name for name in arguments if name not in tool.properties]
        if missing or unknown:
            text = f"missing: {', '.join(missing)}" if missing else f"unknown: {', '.join(unknown)}"
            return {"content": [{"type": "text", "text": f"Bad arguments for {tool.name}: {text}"}], "isError": True}
        try:
            response = self.dispatcher(self._request(request, tool, arguments))
        except (TypeError, ValueError, AttributeError) as error:
            return {"content": [{"type": "text", "text": f"Bad arguments for {tool.name}: {error}"}], "isError": True}
        text = response.body.decode("utf-8", "replace") or "done"
        return {"content": [{"type": "text", "text": text}], "isError": response.status >= 400}

    def _request(self, outer: Request, tool: Tool, arguments: dict[str, Any]) -> Request:
        method = self.dispatcher.service.api.methods[tool.method]
        if tool.prepare:
            arguments = tool.prepare(arguments)
        path, query, body = method.path, {}, {}
        for name, value in {**tool.fixed, **arguments}.items():
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            elif name in method.query or name in ("alt", "fields"):
                values = value if isinstance(value, list) else [value]
                query[name] = [str(v).lower() if isinstance(v, bool) else str(v) for v in values]
            else:
                body[name] = value
        headers = {"content-type": "application/json"}
        if "authorization" in outer.headers:
            headers["authorization"] = outer.headers["authorization"]
        verb = "POST" if method.verb == "*" else method.verb
        return Request(verb, path, query, headers, json.dumps(body).encode() if body else b"")


def _described(tool: Tool) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict(tool.properties), "required": list(tool.required)}
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {**schema, "additionalProperties": False},
    }


def _error(id: Any, code: int, message: str, status: int = 200) -> Response:
    return json_response({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}, status)
