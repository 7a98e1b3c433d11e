"""The plugin: OpenCode, pointed at the rollout's gateway by its own `opencode.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchflow_layers import npm_layers

from benchflow_core.contracts import AgentContext, AgentSpec, AuthOption, Exchange, Launch, read_skill
from benchflow_core.hookspecs import hookimpl

VERSION = "1.18.33"
RIPGREP_VERSION = "1.18.0"
"""Of the npm package."""
PREFIX = "/opt/benchflow/agents/opencode"
_LOCK = Path(__file__).with_name("package-lock.json")
_START = f"""#!/bin/sh
# Its skills, grep and glob need ripgrep: where there is none, it would fetch one from the network.
bin="${{XDG_CACHE_HOME:-$HOME/.cache}}/opencode/bin"
mkdir -p "$bin" && ln -sf {PREFIX}/node_modules/@vscode/ripgrep-linux-*/bin/rg "$bin/rg"
exec {PREFIX}/node_modules/opencode-ai/bin/opencode.exe "$@"
"""
"""npm's install script puts the build for this platform into `opencode.exe`, whatever the platform."""
_PROVIDER = "benchflow"
_SDKS = {
    "messages": ("@ai-sdk/anthropic", "/v1"),
    "responses": ("@ai-sdk/openai", "/v1"),
    "gemini": ("@ai-sdk/google", "/v1beta"),
    "chat": ("@ai-sdk/openai-compatible", "/v1"),
}
"""Wire to the client that speaks it, which is part of OpenCode, and what its base URL ends with."""
_WEB_TOOLS = ("webfetch", "websearch")


@hookimpl
def benchflow_agent() -> AgentSpec:
    packages = (f"opencode-ai@{VERSION}", f"@vscode/ripgrep@{RIPGREP_VERSION}")
    return AgentSpec(
        summary="OpenCode: one native program, speaks every model API",
        prepare=prepare,
        takes_model=True,
        options={},
        layers=npm_layers(
            PREFIX,
            *packages,
            lock=_LOCK.read_bytes(),
            files={"bin/opencode": _START.encode()},
            check=(VERSION, f"{PREFIX}/bin/opencode", "--version"),
        ),
        wires=("messages", "responses", "gemini", "chat"),
        auth=(
            AuthOption(
                "host-login",
                files={"~/.local/share/opencode/auth.json": ".local/share/opencode/auth.json"},
                native=True,
                hint="inferred from model/provider",
            ),
        ),
        skill_paths=("~/.config/opencode/skills", "~/.claude/skills", "~/.agents/skills"),
        skill_call=skill_call,
        web_tools_can_be_disabled=True,
        exchange_purpose=purpose,
        handshake_timeout=180.0,
        version=VERSION,
        reports_version=True,
        homepage="https://opencode.ai",
    )


def skill_call(call: Mapping[str, Any]) -> str | None:
    """Its own tool for skills, named in the title until the call has ended."""
    given = call.get("rawInput") or {}
    return given.get("name") if call.get("title") == "skill" else read_skill(call)


def prepare(context: AgentContext) -> Launch:
    import json

    path = f"{context.home.rstrip('/')}/.config/opencode/opencode.json"
    env = {
        "OPENCODE_CONFIG": path,
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_SHARE": "1",
    }
    content = json.dumps(_config(context), indent=2).encode()
    return Launch(argv=(f"{PREFIX}/bin/opencode", "acp"), env=env, files={path: content})


def _config(context: AgentContext) -> dict[str, Any]:
    answer = "allow" if context.permissions == "allow" else "ask"
    permission = {"edit": answer, "bash": answer, "external_directory": answer}
    config: dict[str, Any] = {"autoupdate": False, "share": "disabled", "permission": permission}
    if not context.web_tools:
        permission |= dict.fromkeys(_WEB_TOOLS, "deny")
    if context.endpoint is None:
        return config | ({"model": context.model} if context.model else {})
    endpoint = context.endpoint
    npm, suffix = _SDKS[endpoint.wire]
    model = {"name": endpoint.model, "options": _effort(endpoint.wire, context.effort)}
    provider = {
        "npm": npm,
        "name": "BenchFlow",
        "options": {"baseURL": endpoint.base_url + suffix, "apiKey": endpoint.key},
        "models": {endpoint.model: model},
    }
    name = f"{_PROVIDER}/{endpoint.model}"
    # Titles and the like on the same model: another one would be neither declared nor counted.
    only = {"enabled_providers": [_PROVIDER], "provider": {_PROVIDER: provider}}
    return config | only | {"model": name, "small_model": name}


def _effort(wire: str, effort: str | None) -> dict[str, Any]:
    if effort is None:
        return {}
    if wire == "messages":
        return {"effort": effort}
    if wire == "gemini":
        return {"thinkingConfig": {"thinkingLevel": effort}}
    return {"reasoningEffort": effort}


def purpose(exchange: Exchange) -> str:
    """A request without tools is a title or a summary."""
    return "agent" if exchange.request.get("tools") else "title"
