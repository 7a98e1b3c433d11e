"""The plugin: OpenClaw's ACP program, the gateway process it needs, and the settings that point both at our model."""

from __future__ import annotations

from pathlib import Path

from benchflow_layers import NODE, npm_layers

from benchflow_core.contracts import AgentContext, AgentSpec, Companion, Exchange, Launch, McpServer
from benchflow_core.hookspecs import hookimpl

VERSION = "2026.9.6"
PREFIX = "/opt/benchflow/agents/openclaw"
_LOCK = Path(__file__).with_name("package-lock.json")
_PROVIDER = "benchflow"
_APIS = {
    "messages": ("anthropic-messages", ""),
    "responses": ("openai-responses", "/v1"),
    "gemini": ("google-generative-ai", "/v1beta"),
    "chat": ("openai-completions", "/v1"),
}
"""Wire to OpenClaw's name for it, and what its base URL ends with."""


@hookimpl
def benchflow_agent() -> AgentSpec:
    start = (Path(__file__).parent / "start.mjs").read_bytes()
    return AgentSpec(
        summary=f"OpenClaw {VERSION}, with a gateway process of its own beside it",
        prepare=prepare,
        takes_model=True,
        options={},
        layers=npm_layers(
            PREFIX,
            f"openclaw@{VERSION}",
            lock=_LOCK.read_bytes(),
            files={"start.mjs": start},
            check=(VERSION, f"{PREFIX}/node_modules/.bin/openclaw", "--version"),
        ),
        wires=("messages", "responses", "gemini", "chat"),
        effort_option="thought_level",
        mcp="launch",
        skill_paths=("~/.openclaw/skills", "skills"),
        web_tools_can_be_disabled=True,
        errors_are_silent=True,
        exchange_purpose=exchange_purpose,
        handshake_timeout=180.0,
        version=VERSION,
        reports_version=True,
        homepage="https://docs.openclaw.ai",
    )


def exchange_purpose(exchange: Exchange) -> str:
    """Its turns always offer tools; titles and summaries do not."""
    return "agent" if exchange.request.get("tools") else "helper"


def prepare(context: AgentContext) -> Launch:
    import hashlib
    import json

    # Beside the state OpenClaw itself keeps: two roles in one box do not meet.
    folder = f"{context.home.rstrip('/')}/.openclaw/benchflow/{context.role}"
    secret = context.endpoint.key if context.endpoint else context.role
    token = hashlib.sha256(f"openclaw gateway {secret}".encode()).hexdigest()
    settings = json.dumps(_settings(context, token), indent=2).encode()
    env = {
        "BENCHFLOW_OPENCLAW_HOME": folder,
        "OPENCLAW_NO_RESPAWN": "1",
        "OPENCLAW_NO_AUTO_UPDATE": "1",
        "OPENCLAW_SKIP_CRON": "1",
        "DO_NOT_TRACK": "1",
    }
    start = (NODE, f"{PREFIX}/start.mjs")
    gateway = Companion("OpenClaw's gateway", (*start, "gateway"), env=env, ready=(*start, "ready"), ready_timeout=240)
    files = {f"{folder}/openclaw.json": settings, f"{folder}/token": token.encode()}
    return Launch(argv=(*start, "acp"), env=env, files=files, companions=(gateway,))


def _settings(context: AgentContext, token: str) -> dict[str, object]:
    defaults: dict[str, object] = {
        # Its tools run here, whatever directory a session names.
        "workspace": context.workdir,
        # Else it writes a dozen files about itself into the task's working directory.
        "skipBootstrap": True,
        "heartbeat": {"every": "0m"},
    }
    web = {"enabled": context.web_tools}
    found: dict[str, object] = {
        "gateway": {"mode": "local", "bind": "loopback", "auth": {"mode": "token", "token": token}},
        "agents": {"defaults": defaults},
        "tools": {
            "web": {"search": web, "fetch": web},
            "exec": {"mode": "full" if context.permissions == "allow" else "ask"},
        },
        "update": {"checkOnStart": False},
    }
    if context.endpoint is not None:
        defaults["model"] = {"primary": f"{_PROVIDER}/{context.endpoint.model}"}
        found["models"] = {"mode": "replace", "providers": {_PROVIDER: _provider(context)}}
    if context.mcp_servers:
        found["mcp"] = {"servers": {server.name: _mcp(server) for server in context.mcp_servers}}
    return found


def _provider(context: AgentContext) -> dict[str, object]:
    endpoint = context.endpoint
    assert endpoint is not None
    api, suffix = _APIS[endpoint.wire]
    model = {
        "id": endpoint.model,
        "name": endpoint.model,
        "input": ["text", "image"],
        # A thinking level is offered only for models that are said to reason; ours is not in its catalogue.
        "reasoning": context.effort not in (None, "none", "off"),
    }
    return {"baseUrl": endpoint.base_url + suffix, "apiKey": endpoint.key, "api": api, "models": [model]}


def _mcp(server: McpServer) -> dict[str, object]:
    if server.transport == "stdio":
        return {"command": server.command, "args": list(server.args), "env": dict(server.env)}
    transport = "sse" if server.transport == "sse" else "streamable-http"
    return {"url": server.url, "transport": transport, "headers": dict(server.headers)}
