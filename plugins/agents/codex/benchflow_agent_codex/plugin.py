"""The plugin: Codex behind its ACP adapter, pointed at the rollout's gateway by its own `config.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchflow_layers import NODE, npm_layers

from benchflow_core.contracts import AgentContext, AgentSpec, AuthOption, Exchange, Launch, McpServer
from benchflow_core.hookspecs import hookimpl

VERSION = "2.6.0"
PREFIX = "/opt/benchflow/agents/codex"
_LOCK = Path(__file__).with_name("package-lock.json")
_PACKAGE = "@agentclientprotocol/codex-acp"
_CHECK = ("0.166.0", f"{PREFIX}/node_modules/.bin/codex", "--version")
"""Codex itself, which comes as an optional native package, and the version that it says."""
_PROVIDER = "benchflow"
_TITLE_MODEL = "gpt-5.6-luna"
"""Written into the adapter: it titles a session with it after the first turn, and goes on without where it may not."""


@hookimpl
def benchflow_agent() -> AgentSpec:
    keys = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")
    return AgentSpec(
        summary="Codex",
        name="codex-acp",
        prepare=prepare,
        takes_model=True,
        options={},
        layers=npm_layers(PREFIX, f"{_PACKAGE}@{VERSION}", lock=_LOCK.read_bytes(), check=_CHECK),
        wires=("responses",),
        auth=(
            *(AuthOption("api-key", env=(name,)) for name in keys),
            AuthOption("host-login", files={"~/.codex/auth.json": ".codex/auth.json"}, native=True),
        ),
        mcp="launch",
        skill_paths=("~/.agents/skills", "~/.codex/skills"),
        web_tools_can_be_disabled=True,
        errors_are_silent=True,
        helper_models=("gpt-*", "codex-*"),
        exchange_purpose=purpose,
        handshake_timeout=120.0,
        version=VERSION,
        reports_version=True,
        homepage="https://github.com/agentclientprotocol/codex-acp",
    )


def prepare(context: AgentContext) -> Launch:
    home = f"{context.home.rstrip('/')}/.codex"
    env = {"CODEX_HOME": home, "NO_BROWSER": "1"}
    if context.endpoint is not None:
        env["OPENAI_API_KEY"] = context.endpoint.key
    argv = (NODE, f"{PREFIX}/node_modules/{_PACKAGE}/dist/index.js")
    # The box is the sandbox: Codex's own needs namespaces inside namespaces, which few boxes have. Under another policy
    # than `allow` it is used nevertheless, and what is to leave it is asked for.
    mode = "agent-full-access" if context.permissions == "allow" else "workspace-write"
    return Launch(argv=argv, env=env, files={f"{home}/config.toml": _config(context).encode()}, session_mode=mode)


def _config(context: AgentContext) -> str:
    import tomli_w

    endpoint = context.endpoint
    config: dict[str, Any] = {"check_for_update_on_startup": False, "cli_auth_credentials_store": "file"}
    model = endpoint.model if endpoint else (context.model or "").rpartition("/")[2]
    if model:
        config["model"] = model
    if context.effort:
        config["model_reasoning_effort"] = context.effort
    if not context.web_tools:
        config["web_search"] = "disabled"
    config |= {"analytics": {"enabled": False}, "otel": {"exporter": "none"}, "history": {"persistence": "none"}}
    if context.mcp_servers:
        config["mcp_servers"] = {server.name: _server(server) for server in context.mcp_servers}
    if endpoint is not None:
        config["model_provider"] = _PROVIDER
        own = {"name": "BenchFlow", "base_url": f"{endpoint.base_url}/v1", "env_key": "OPENAI_API_KEY"}
        config["model_providers"] = {_PROVIDER: {**own, "wire_api": "responses"}}
    return tomli_w.dumps(config)


def _server(server: McpServer) -> dict[str, Any]:
    """Over ACP it would be given ten seconds to start, and then the model would be asked without its tools."""
    if server.transport == "sse":
        from benchflow_core.errors import CapabilityMissing

        raise CapabilityMissing(
            f"Codex takes no MCP servers over sse, as '{server.name}' needs.",
            remedy="Choose another agent or another transport.",
        )
    if server.transport == "stdio":
        reached: dict[str, Any] = {"command": server.command, "args": list(server.args), "env": dict(server.env)}
    else:
        reached = {"url": server.url, "http_headers": dict(server.headers)}
    return {**reached, "required": True, "startup_timeout_sec": 120, "tool_timeout_sec": 600}


def purpose(exchange: Exchange) -> str:
    return "title" if exchange.requested_model == _TITLE_MODEL else "agent"
