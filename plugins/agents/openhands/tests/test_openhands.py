from __future__ import annotations

import json
from dataclasses import replace

import pytest
from benchflow_agent_openhands.plugin import VERSION, benchflow_agent, prepare

from benchflow_core.contracts import AgentContext, ModelEndpoint

CONTEXT = AgentContext(
    workdir="/app",
    home="/root",
    user="root",
    prefix=None,
    model="openai/gpt-5",
    endpoint=ModelEndpoint(base_url="http://127.0.0.1:1", key="k", wire="chat", model="gpt-5"),
)


def settings(context: AgentContext) -> dict[str, object]:
    found = json.loads(prepare(context).files["/root/.openhands/agent_settings.json"])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("wire", "model", "url"),
    [
        ("chat", "openai/gpt-5", "http://127.0.0.1:1/v1"),
        ("responses", "openai/gpt-5", "http://127.0.0.1:1/v1"),
        ("messages", "anthropic/gpt-5", "http://127.0.0.1:1"),
    ],
)
def test_the_wire_is_ours_to_choose(wire: str, model: str, url: str) -> None:
    assert CONTEXT.endpoint is not None
    context = replace(CONTEXT, endpoint=replace(CONTEXT.endpoint, wire=wire))
    assert prepare(context).argv[-1] == wire
    for llm in (settings(context)["llm"], settings(context)["condenser"]["llm"]):  # type: ignore[index]
        assert (llm["model"], llm["base_url"], llm["api_key"]) == (model, url, "k")


@pytest.mark.parametrize(("asked", "given"), [("max", "xhigh"), ("minimal", "low"), ("high", "high"), (None, None)])
def test_effort_in_its_own_words(asked: str | None, given: str | None) -> None:
    assert settings(replace(CONTEXT, effort=asked))["llm"].get("reasoning_effort") == given  # type: ignore[attr-defined]


def test_prompt_caching_can_be_switched_off() -> None:
    llm = settings(replace(CONTEXT, env={"LLM_CACHING_PROMPT": "false"}))["llm"]
    assert llm["caching_prompt"] is False  # type: ignore[index]
    assert "caching_prompt" not in settings(CONTEXT)["llm"]  # type: ignore[operator]


def test_everything_it_installs_is_pinned() -> None:
    spec = benchflow_agent()
    lines = spec.layers[1].files["requirements.txt"].decode().split()
    assert f"openhands=={VERSION}" in lines and len(lines) > 200
    assert all("==" in line for line in lines)
