"""From a fresh process to a session that can be prompted: initialize, authenticate, session, model and mode."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from benchflow_acp.client import Client
from benchflow_acp.connection import Connection, RpcError
from benchflow_acp.session import AUTH_REQUIRED, AcpSession, protocol_error
from benchflow_acp.settings import apply_settings
from benchflow_core.contracts.agents import SessionEvent
from benchflow_core.contracts.common import McpServer
from benchflow_core.contracts.logs import CappedLog
from benchflow_core.contracts.sandboxes import Process
from benchflow_core.contracts.sessions import SessionOptions
from benchflow_core.errors import (
    AgentCrashed,
    AgentProtocolError,
    AgentTimeout,
    CapabilityMissing,
    ConfigurationError,
)

__all__ = ["AGENT_METHODS", "PROTOCOL_VERSION", "open_session"]

PROTOCOL_VERSION = 1
"""Always 1: agents that also know a version 2 refuse our messages under it, others claim it without speaking it."""

_LOG_IN = "Give it its key or its login."
_CANNOT_START = {126: "cannot be executed", 127: "was not found"}

AGENT_METHODS = frozenset(
    {
        "initialize",
        "authenticate",
        "session/new",
        "session/load",
        "session/prompt",
        "session/cancel",
        "session/set_model",
        "session/set_mode",
        "session/set_config_option",
    }
)


async def open_session(process: Process, options: SessionOptions) -> AcpSession:
    """Takes the process over. Whatever goes wrong, cancellation included, it is killed before this raises."""
    client = Client(options)
    connection = Connection(
        process,
        client,
        log=CappedLog(options.stderr_log),
        max_line_bytes=options.max_line_bytes,
        echoes=AGENT_METHODS,
    )
    client.connection = connection
    try:
        return await _Handshake(connection, client, options).run()
    except BaseException:
        await connection.close()
        await client.close()
        raise


class _Handshake:
    def __init__(self, connection: Connection, client: Client, options: SessionOptions) -> None:
        self._connection = connection
        self._client = client
        self._options = options
        limit = options.handshake_timeout
        self._limit = options.spec.handshake_timeout if limit is None else limit

    async def run(self) -> AcpSession:
        hello = await self._initialize()
        await self._authenticate(hello)
        session_id, session = await self._session(hello)
        self._client.session_id = session_id
        settings = await apply_settings(self._ask, session_id, session, self._options)
        info = {"initialize": hello, "session": session, "settings": settings}
        self._options.emit(SessionEvent("session_started", {"sessionId": session_id, **info}))
        return AcpSession(session_id, self._connection, self._client, self._options, info)

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer as an object. Raises `RpcError`, or what ended the connection, or `AgentTimeout`."""
        future = self._connection.request(method, params)
        await asyncio.wait({future}, timeout=self._limit)
        if not future.done():
            raise AgentTimeout(
                f"the agent did not answer {method} within {self._limit:g} s.",
                details={"reason": "handshake", "method": method, "stderr_tail": self._connection.excerpt},
            )
        answer = future.result()
        return answer if isinstance(answer, dict) else {}

    async def _initialize(self) -> dict[str, Any]:
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": _capabilities(self._options),
            "clientInfo": {"name": "benchflow", "title": "BenchFlow", "version": metadata.version("benchflow-acp")},
        }
        try:
            answer = await self._ask("initialize", params)
        except RpcError as error:
            raise protocol_error(error) from None
        except AgentCrashed as error:
            if error.details["exit_code"] in _CANNOT_START and not self._connection.met:
                raise _not_started(error) from None
            raise
        version = answer.get("protocolVersion", PROTOCOL_VERSION)
        if version != PROTOCOL_VERSION:
            raise AgentProtocolError(
                f"the agent speaks ACP version {version!s:.40}; this client speaks {PROTOCOL_VERSION}.",
                details={"protocolVersion": version},
            )
        self._check_version(answer)
        return answer

    def _check_version(self, answer: Mapping[str, Any]) -> None:
        """What runs is what was pinned, where the agent says so; one that does not say is taken at its layer's word."""
        spec, said = self._options.spec, _at(answer, "agentInfo", "version")
        if spec.reports_version and isinstance(said, str) and said != spec.version:
            raise ConfigurationError(
                f"the agent in the box is version {said:.40}, and version {spec.version} is pinned.",
                remedy="Remove its cached layer, or update the agent's plugin.",
                details={"pinned": spec.version, "found": said[:100]},
            )

    async def _authenticate(self, hello: Mapping[str, Any]) -> None:
        method = self._options.auth_method
        if method is None or method not in _auth_methods(hello):
            return
        try:
            await self._ask("authenticate", {"methodId": method})
        except RpcError as error:
            raise AgentProtocolError(
                f"the agent refused authentication by '{method}': {error.message}",
                remedy=_LOG_IN,
                details={"code": error.code, "message": error.message},
            ) from None

    async def _session(self, hello: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        options = self._options
        params: dict[str, Any] = {"cwd": options.cwd, "mcpServers": _mcp_servers(options.mcp_servers, hello)}
        if options.session_meta:
            params["_meta"] = dict(options.session_meta)
        try:
            if options.load_session is not None:
                return options.load_session, await self._load(options.load_session, params, hello)
            answer = await self._ask("session/new", params)
        except RpcError as error:
            raise self._refused(error, hello) from None
        session_id = answer.get("sessionId")
        if not isinstance(session_id, str) or not session_id:
            raise AgentProtocolError("the agent answered session/new without a session id.", details={"answer": answer})
        return session_id, answer

    async def _load(self, session_id: str, params: dict[str, Any], hello: Mapping[str, Any]) -> dict[str, Any]:
        if not _at(hello, "agentCapabilities", "loadSession"):
            raise CapabilityMissing("the agent cannot load a session.", remedy="Start a new one.")
        self._client.replaying = True
        try:
            return await self._ask("session/load", {"sessionId": session_id, **params})
        finally:
            self._client.replaying = False

    def _refused(self, error: RpcError, hello: Mapping[str, Any]) -> Exception:
        """An agent's claim that it must log in is its own failure: only the provider itself can refuse a key."""
        if error.code != AUTH_REQUIRED:
            return protocol_error(error)
        offered = ", ".join(_auth_methods(hello)) or "none"
        return AgentProtocolError(
            f"the agent wants to be authenticated first: {error.message} (methods: {offered}).",
            remedy=_LOG_IN,
            details={"code": error.code, "message": error.message, "auth_required": True},
        )


def _not_started(error: AgentCrashed) -> AgentCrashed:
    """Say what the exit codes of a shell mean: the program itself never ran."""
    why = _CANNOT_START[error.details["exit_code"]]
    tail = error.details["stderr_tail"]
    return AgentCrashed(
        f"the agent's program {why} in the box: {tail.splitlines()[-1][:300] if tail else 'no reason given'}.",
        remedy="Check its command, and that the image or the agent's install has it.",
        details=error.details,
    )


def _capabilities(options: SessionOptions) -> dict[str, Any]:
    """Nothing that we would refuse later: agents act on what is advertised."""
    files = options.client_files
    enabled = files is not None and files.files
    found: dict[str, Any] = {
        "fs": {"readTextFile": enabled, "writeTextFile": enabled},
        "terminal": files is not None and files.terminal,
    }
    if options.elicit is not None:
        found["elicitation"] = {"form": {}}
    return found


def _mcp_servers(servers: Sequence[McpServer], hello: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for server in servers:
        if server.transport == "stdio":
            found.append(
                {
                    "name": server.name,
                    "command": server.command or "",
                    "args": list(server.args),
                    "env": _pairs(server.env),
                }
            )
            continue
        if not _at(hello, "agentCapabilities", "mcpCapabilities", server.transport):
            raise CapabilityMissing(
                f"the agent takes no MCP servers over {server.transport}, as '{server.name}' needs.",
                remedy="Choose another agent or another transport.",
            )
        found.append(
            {"type": server.transport, "name": server.name, "url": server.url or "", "headers": _pairs(server.headers)}
        )
    return found


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _auth_methods(hello: Mapping[str, Any]) -> list[str]:
    methods = hello.get("authMethods")
    return [str(m["id"]) for m in methods if isinstance(m, Mapping) and "id" in m] if isinstance(methods, list) else []


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
