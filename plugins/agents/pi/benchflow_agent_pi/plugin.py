"""The plugin: pi behind its ACP adapter, pointed at the rollout's gateway by its own `models.json`."""

from __future__ import annotations

from pathlib import Path

from benchflow_layers import NODE, npm_layers

from benchflow_core.contracts import AgentContext, AgentSpec, AuthOption, Launch
from benchflow_core.hookspecs import hookimpl

VERSION = "0.0.34"
"""Of the adapter, as it reports it."""
PI_VERSION = "0.87.1"
PREFIX = "/opt/benchflow/agents/pi"
_LOCK = Path(__file__).with_name("package-lock.json")
_MODULES = f"{PREFIX}/node_modules"
_PI = f'#!/bin/sh\nexec {NODE} {_MODULES}/@earendil-works/pi-coding-agent/dist/bundle/cli.js "$@"\n'
_PROVIDER = "benchflow"
_APIS = {
    "messages": ("anthropic-messages", ""),
    "responses": ("openai-responses", "/v1"),
    "gemini": ("google-generative-ai", "/v1beta"),
    "chat": ("openai-completions", "/v1"),
}
"""Wire to pi's name for it, and what its base URL ends with."""


@hookimpl
def benchflow_agent() -> AgentSpec:
    packages = (f"pi-acp@{VERSION}", f"@earendil-works/pi-coding-agent@{PI_VERSION}")
    return AgentSpec(
        summary=f"pi {PI_VERSION}, a minimal coding agent: four tools, never asks for permission",
        name="pi-acp",
        prepare=prepare,
        takes_model=True,
        options={},
        layers=npm_layers(
            PREFIX,
            *packages,
            lock=_LOCK.read_bytes(),
            files={"bin/pi": _PI.encode()},
            check=(PI_VERSION, f"{PREFIX}/bin/pi", "--version"),
        ),
        wires=("messages", "responses", "gemini", "chat"),
        auth=(
            # Only said, for its default model: each provider's key is its own, and this one is no other provider's.
            AuthOption("api-key", hint="ANTHROPIC_API_KEY"),
            AuthOption("host-login", files={"~/.pi/agent/auth.json": ".pi/agent/auth.json"}, native=True),
        ),
        default_model="anthropic/claude-haiku-4-5-20251001",
        mcp="",
        skill_paths=("~/.pi/agent/skills", "~/.agents/skills"),
        errors_are_silent=True,
        version=VERSION,
        reports_version=True,
        homepage="https://pi.dev",
    )


def prepare(context: AgentContext) -> Launch:
    import json

    folder = f"{context.home.rstrip('/')}/.pi/agent"
    files = {f"{folder}/settings.json": json.dumps(_settings(context), indent=2).encode()}
    if context.endpoint is not None:
        files[f"{folder}/models.json"] = json.dumps(_models(context), indent=2).encode()
    env = {
        "PI_ACP_PI_COMMAND": f"{PREFIX}/bin/pi",
        "PI_CODING_AGENT_DIR": folder,
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
        "PI_TELEMETRY": "0",
    }
    return Launch(argv=(NODE, f"{_MODULES}/pi-acp/dist/index.js"), env=env, files=files)


def _settings(context: AgentContext) -> dict[str, object]:
    found: dict[str, object] = {"quietStartup": True, "enableInstallTelemetry": False}
    if context.endpoint is not None:
        found |= {"defaultProvider": _PROVIDER, "defaultModel": context.endpoint.model}
    elif context.model:
        provider, _, model = context.model.rpartition("/")
        found |= {"defaultProvider": provider, "defaultModel": model} if provider else {"defaultModel": model}
    if context.effort:
        found["defaultThinkingLevel"] = "off" if context.effort == "none" else context.effort
    return found


def _models(context: AgentContext) -> dict[str, object]:
    endpoint = context.endpoint
    assert endpoint is not None
    api, suffix = _APIS[endpoint.wire]
    # pi offers a thinking level only to models that are said to reason; ours is not in its catalogue.
    model = {"id": endpoint.model, "input": ["text", "image"], "reasoning": context.effort not in (None, "none", "off")}
    provider = {"baseUrl": endpoint.base_url + suffix, "api": api, "apiKey": endpoint.key, "models": [model]}
    return {"providers": {_PROVIDER: provider}}
