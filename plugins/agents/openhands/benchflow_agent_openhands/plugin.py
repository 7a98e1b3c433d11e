"""The plugin: OpenHands' ACP server, pointed at the rollout's gateway by its own settings file."""

from __future__ import annotations

from pathlib import Path

from benchflow_layers import pip_layers

from benchflow_core.contracts import AgentContext, AgentSpec, AuthOption, Launch
from benchflow_core.hookspecs import hookimpl

VERSION = "1.16.0"
PREFIX = "/opt/benchflow/agents/openhands"
_MODELS = {"chat": ("openai/", "/v1"), "responses": ("openai/", "/v1"), "messages": ("anthropic/", "")}
"""Wire to the prefix that makes OpenHands speak it, and what its base URL ends with."""
_PRINT_VERSION = "import openhands_cli.acp_impl.agent, importlib.metadata as m; print(m.version('openhands'))"
_CHECK = (VERSION, f"{PREFIX}/bin/python", "-c", _PRINT_VERSION)
_EFFORTS = {"minimal": "low", "max": "xhigh"}
"""Names it does not know, and the nearest that it does."""


@hookimpl
def benchflow_agent() -> AgentSpec:
    here = Path(__file__).parent
    files = {"start.py": (here / "start.py").read_bytes()}
    requirements = (here / "requirements.txt").read_bytes()
    return AgentSpec(
        summary=f"OpenHands {VERSION}: a terminal, a file editor and sub-agents; asks for permission",
        prepare=prepare,
        takes_model=True,
        options={},
        layers=pip_layers(PREFIX, f"openhands@{VERSION}", requirements, files=files, check=_CHECK),
        wires=("messages", "chat", "responses"),
        auth=(AuthOption("api-key", env=("LLM_API_KEY",)),),
        skill_paths=("~/.agents/skills", ".agents/skills"),
        handshake_timeout=180.0,
        version=VERSION,
        reports_version=True,
        homepage="https://docs.openhands.dev",
    )


def prepare(context: AgentContext) -> Launch:
    import json

    folder = f"{context.home.rstrip('/')}/.openhands"
    files = {f"{folder}/cli_config.json": json.dumps({"critic": {"enable_critic": False}}).encode()}
    wire = "chat"
    if context.endpoint is not None:
        files[f"{folder}/agent_settings.json"] = json.dumps(_settings(context), indent=2).encode()
        wire = context.endpoint.wire
    env = {
        "OPENHANDS_PERSISTENCE_DIR": folder,
        "OPENHANDS_WORK_DIR": context.workdir,
        "OPENHANDS_SUPPRESS_BANNER": "1",
        # Else LiteLLM asks the network for prices, and tries again for eight seconds.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "ANONYMIZED_TELEMETRY": "false",
        "DO_NOT_TRACK": "1",
    }
    return Launch(argv=(f"{PREFIX}/bin/python", f"{PREFIX}/start.py", wire), env=env, files=files)


def _settings(context: AgentContext) -> dict[str, object]:
    """What OpenHands itself would write after its settings dialogue, with our model in it."""
    model = _model(context)
    condenser = {"kind": "LLMSummarizingCondenser", "llm": {**model, "usage_id": "condenser"}, "max_size": 80}
    tools = ("terminal", "file_editor", "task_tracker", "task_tool_set")
    return {
        "kind": "Agent",
        "llm": {**model, "usage_id": "agent"},
        "tools": [{"name": name, "params": {}} for name in tools],
        "system_prompt_kwargs": {"cli_mode": True},
        "condenser": {**condenser, "keep_first": 4},
    }


def _model(context: AgentContext) -> dict[str, object]:
    endpoint = context.endpoint
    assert endpoint is not None
    prefix, suffix = _MODELS[endpoint.wire]
    found: dict[str, object] = {
        "model": prefix + endpoint.model,
        "api_key": endpoint.key,
        "base_url": endpoint.base_url + suffix,
    }
    if context.effort:
        found["reasoning_effort"] = _EFFORTS.get(context.effort, context.effort)
    if context.env.get("LLM_CACHING_PROMPT", "").lower() in ("false", "0"):
        found["caching_prompt"] = False
    return found
