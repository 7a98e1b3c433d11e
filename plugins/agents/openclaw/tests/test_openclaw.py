from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from benchflow_agent_openclaw.plugin import exchange_purpose, prepare

from benchflow_core.contracts import AgentContext, Exchange, McpServer, ModelEndpoint, Usage

CONTEXT = AgentContext(
    workdir="/app",
    home="/root",
    user="root",
    prefix=None,
    endpoint=ModelEndpoint(base_url="http://127.0.0.1:1", key="k", wire="chat", model="m"),
)


def settings(context: AgentContext) -> Any:
    return json.loads(prepare(context).files["/root/.openclaw/benchflow/agent/openclaw.json"])


@pytest.mark.parametrize(
    ("wire", "api", "url"),
    [
        ("chat", "openai-completions", "http://127.0.0.1:1/v1"),
        ("responses", "openai-responses", "http://127.0.0.1:1/v1"),
        ("messages", "anthropic-messages", "http://127.0.0.1:1"),
        ("gemini", "google-generative-ai", "http://127.0.0.1:1/v1beta"),
    ],
)
def test_every_wire_has_its_name(wire: str, api: str, url: str) -> None:
    assert CONTEXT.endpoint is not None
    found = settings(replace(CONTEXT, endpoint=replace(CONTEXT.endpoint, wire=wire)))
    provider = found["models"]["providers"]["benchflow"]
    assert (provider["api"], provider["baseUrl"], provider["apiKey"]) == (api, url, "k")
    assert found["agents"]["defaults"]["model"] == {"primary": "benchflow/m"}


def test_servers_are_in_its_settings() -> None:
    servers = (
        McpServer("files", "stdio", command="serve", args=("-v",), env={"A": "b"}),
        McpServer("mail", "http", url="http://mail/mcp", headers={"X": "y"}),
        McpServer("news", "sse", url="http://news/sse"),
    )
    found = settings(replace(CONTEXT, mcp_servers=servers))["mcp"]["servers"]
    assert found["files"] == {"command": "serve", "args": ["-v"], "env": {"A": "b"}}
    assert found["mail"] == {"url": "http://mail/mcp", "transport": "streamable-http", "headers": {"X": "y"}}
    assert found["news"]["transport"] == "sse"


def test_two_roles_in_a_box_do_not_meet() -> None:
    one, two = prepare(CONTEXT), prepare(replace(CONTEXT, role="reviewer"))
    assert not set(one.files) & set(two.files)
    assert one.companions[0].env != two.companions[0].env


def test_its_gateways_token_is_not_the_models_key() -> None:
    launch = prepare(CONTEXT)
    token = launch.files["/root/.openclaw/benchflow/agent/token"].decode()
    assert len(token) == 64 and "k" not in token
    assert token not in repr((launch.argv, launch.env, launch.companions))


def test_requests_without_tools_are_its_own_affairs() -> None:
    def exchange(body: dict[str, Any]) -> Exchange:
        return Exchange("key", 0.0, 0.0, "chat", "/v1/chat/completions", body, None, 200, Usage())

    assert exchange_purpose(exchange({"tools": [{"name": "exec"}]})) == "agent"
    assert exchange_purpose(exchange({"messages": []})) == "helper"
