"""The plugin: Claude Code behind its ACP adapter, pointed at the rollout's gateway by its environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchflow_layers import NODE, npm_layers

from benchflow_core.contracts import AgentContext, AgentSpec, AuthOption, Exchange, Launch, read_skill
from benchflow_core.hookspecs import hookimpl

VERSION = "0.99.1"
PREFIX = "/opt/benchflow/agents/claude"
_LOCK = Path(__file__).with_name("package-lock.json")
_PACKAGE = "@agentclientprotocol/claude-agent-acp"
_CHECK = ("2.1.312", NODE, f"{PREFIX}/node_modules/{_PACKAGE}/dist/index.js", "--cli", "--version")
"""Claude Code itself, which comes as an optional native package of its SDK, and the version that it says."""
_TIERS = ("OPUS", "SONNET", "HAIKU", "FABLE")


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(
        summary="Claude Code",
        name="claude-agent-acp",
        prepare=prepare,
        takes_model=True,
        options={},
        layers=npm_layers(PREFIX, f"{_PACKAGE}@{VERSION}", lock=_LOCK.read_bytes(), check=_CHECK),
        wires=("messages",),
        auth=(
            AuthOption("api-key", env=("ANTHROPIC_API_KEY",)),
            AuthOption("token", env=("ANTHROPIC_AUTH_TOKEN",)),
            AuthOption("oauth-token", env=("CLAUDE_CODE_OAUTH_TOKEN",), native=True),
            AuthOption("host-login", files={"~/.claude/.credentials.json": ".claude/.credentials.json"}, native=True),
        ),
        default_rank=10,
        default_model="anthropic/claude-haiku-4-5-20251001",
        effort_option="effort",
        skill_paths=("~/.claude/skills",),
        skill_call=skill_call,
        web_tools_can_be_disabled=True,
        helper_models=("claude-*",),
        exchange_purpose=purpose,
        handshake_timeout=120.0,
        version=VERSION,
        reports_version=True,
    )


def skill_call(call: Mapping[str, Any]) -> str | None:
    """Its own tool for skills, by the name that the adapter gives under `_meta`; which one comes with an update."""
    about, given = (call.get("_meta") or {}).get("claudeCode") or {}, call.get("rawInput") or {}
    return given.get("skill") if about.get("toolName") == "Skill" else read_skill(call)


def prepare(context: AgentContext) -> Launch:
    import json

    settings = json.dumps(_settings(context), indent=2).encode()
    argv = (NODE, f"{PREFIX}/node_modules/{_PACKAGE}/dist/index.js")
    files = {f"{context.home.rstrip('/')}/.claude/settings.json": settings}
    # Under `allow` it does not ask at all: a root user may do so only where this says that it is a sandbox.
    mode = "bypassPermissions" if context.permissions == "allow" else None
    return Launch(argv=argv, env=_env(context), files=files, session_mode=mode)


def _env(context: AgentContext) -> dict[str, str]:
    env = {
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }
    model = context.endpoint.model if context.endpoint else (context.model or "").rpartition("/")[2]
    if model:
        # Also what it uses for titles, summaries and subagents: another model is neither declared nor counted.
        env |= {"ANTHROPIC_MODEL": model, "ANTHROPIC_SMALL_FAST_MODEL": model, "CLAUDE_CODE_SUBAGENT_MODEL": model}
        env |= {f"ANTHROPIC_DEFAULT_{tier}_MODEL": model for tier in _TIERS}
    if context.endpoint is not None:
        env |= {"ANTHROPIC_BASE_URL": context.endpoint.base_url, "ANTHROPIC_API_KEY": context.endpoint.key}
    return env


def _settings(context: AgentContext) -> dict[str, Any]:
    denied = [] if context.web_tools else ["WebFetch", "WebSearch"]
    return {"permissions": {"deny": denied}} if denied else {}


def purpose(exchange: Exchange) -> str:
    """A request without tools is a title, a summary or a check of the quota."""
    return "agent" if exchange.request.get("tools") else "helper"
