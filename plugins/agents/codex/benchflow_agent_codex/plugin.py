"""The plugin: Codex behind its ACP adapter, pointed at the rollout's gateway by its own `config.toml`."""

from __future__ import annotations

from benchflow_core.contracts import NODE, AgentContext, AgentSpec, AuthOption, Exchange, Launch, npm_layers
from benchflow_core.hookspecs import hookimpl

VERSION = "2.6.0"
PREFIX = "/opt/benchflow/agents/codex"
_PACKAGE = "@agentclientprotocol/codex-acp"
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
        layers=npm_layers(PREFIX, f"{_PACKAGE}@{VERSION}"),
        wires=("responses",),
        auth=(
            *(AuthOption("api-key", env=(name,)) for name in keys),
            AuthOption("host-login", files={"~/.codex/auth.json": ".codex/auth.json"}, native=True),
        ),
        skill_paths=("~/.agents/skills", "~/.codex/skills"),
        web_tools_can_be_disabled=True,
        errors_are_silent=True,
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
    endpoint = context.endpoint
    top: dict[str, object] = {"check_for_update_on_startup": False, "cli_auth_credentials_store": "file"}
    model = endpoint.model if endpoint else (context.model or "").rpartition("/")[2]
    if model:
        top["model"] = model
    if context.effort:
        top["model_reasoning_effort"] = context.effort
    if not context.web_tools:
        top["web_search"] = "disabled"
    tables: dict[str, dict[str, object]] = {
        "analytics": {"enabled": False},
        "otel": {"exporter": "none"},
        "history": {"persistence": "none"},
    }
    if endpoint is not None:
        top["model_provider"] = _PROVIDER
        tables[f"model_providers.{_PROVIDER}"] = {
            "name": "BenchFlow",
            "base_url": f"{endpoint.base_url}/v1",
            "env_key": "OPENAI_API_KEY",
            "wire_api": "responses",
        }
    return "\n".join([_lines(top), *(f"[{name}]\n{_lines(table)}" for name, table in tables.items())])


def _lines(table: dict[str, object]) -> str:
    """Simple values look the same in TOML and in JSON."""
    import json

    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())


def purpose(exchange: Exchange) -> str:
    return "title" if exchange.requested_model == _TITLE_MODEL else "agent"
