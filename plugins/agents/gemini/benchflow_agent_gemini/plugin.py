"""The plugin: Gemini CLI, pointed at the rollout's gateway by its environment and its own `settings.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchflow_layers import NODE, npm_layers

from benchflow_core.contracts import AgentContext, AgentSpec, AuthOption, Exchange, Launch, read_skill
from benchflow_core.hookspecs import hookimpl

VERSION = "0.61.0"
PREFIX = "/opt/benchflow/agents/gemini"
_LOCK = Path(__file__).with_name("package-lock.json")
_PACKAGE = "@google/gemini-cli"
_LOGIN = ("oauth_creds.json", "google_accounts.json")
_WEB_TOOLS = ("google_web_search", "web_fetch")
_LEVELS = {"none": "MINIMAL", "minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM"}
_BUDGETS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192}
"""Models before 3 know no levels."""


@hookimpl
def benchflow_agent() -> AgentSpec:
    check = (VERSION, NODE, f"{PREFIX}/node_modules/{_PACKAGE}/bundle/gemini.js", "--version")
    return AgentSpec(
        summary="Gemini CLI",
        prepare=prepare,
        takes_model=True,
        options={},
        layers=npm_layers(PREFIX, f"{_PACKAGE}@{VERSION}", lock=_LOCK.read_bytes(), check=check),
        wires=("gemini",),
        auth=(
            AuthOption("api-key", env=("GEMINI_API_KEY",)),
            AuthOption("api-key", env=("GOOGLE_API_KEY",)),
            AuthOption("host-login", files={f"~/.gemini/{name}": f".gemini/{name}" for name in _LOGIN}, native=True),
        ),
        default_model="gemini/gemini-2.5-flash",
        skill_paths=("~/.gemini/skills", "~/.agents/skills"),
        skill_call=skill_call,
        web_tools_can_be_disabled=True,
        helper_models=("gemini-*", "gemma-*"),
        exchange_purpose=purpose,
        handshake_timeout=120.0,
        version=VERSION,
        reports_version=True,
        homepage="https://geminicli.com",
    )


def skill_call(call: Mapping[str, Any]) -> str | None:
    """Its own tool for skills, named in the id of the call; the title begins with the skill's name, in quotes."""
    if not str(call.get("toolCallId")).startswith("activate_skill"):
        return read_skill(call)
    title = str(call.get("title") or "")
    return title.split('"')[1] if title.startswith('"') else title or None


def prepare(context: AgentContext) -> Launch:
    import json

    model = context.endpoint.model if context.endpoint else (context.model or "").rpartition("/")[2]
    argv = [NODE, f"{PREFIX}/node_modules/{_PACKAGE}/bundle/gemini.js", "--acp"]
    if model:
        argv += ["--model", model]
    if context.permissions == "allow":
        argv.append("--yolo")
    env = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"}
    if context.endpoint is not None:
        env |= {"GOOGLE_GEMINI_BASE_URL": context.endpoint.base_url, "GEMINI_API_KEY": context.endpoint.key}
    content = json.dumps(_settings(context, model), indent=2).encode()
    return Launch(argv=tuple(argv), env=env, files={f"{context.home.rstrip('/')}/.gemini/settings.json": content})


def _settings(context: AgentContext, model: str) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {
            "auth": {"selectedType": "gemini-api-key" if context.endpoint else "oauth-personal"},
            "folderTrust": {"enabled": False},
        },
    }
    if not context.web_tools:
        settings["tools"] = {"exclude": list(_WEB_TOOLS)}
    if context.effort and model:
        older = model.startswith(("gemini-1", "gemini-2"))
        level = {"thinkingBudget": _BUDGETS.get(context.effort, 24576)}
        thinking = level if older else {"thinkingLevel": _LEVELS.get(context.effort, "HIGH")}
        config = {"generateContentConfig": {"thinkingConfig": thinking}}
        override = {"match": {"model": model}, "modelConfig": config}
        settings["modelConfigs"] = {"customOverrides": [override]}
    return settings


def purpose(exchange: Exchange) -> str:
    """A request without tools is a summary or a routing question."""
    return "agent" if exchange.request.get("tools") else "helper"
