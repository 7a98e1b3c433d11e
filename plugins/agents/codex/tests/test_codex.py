"""Its settings: what a task says of MCP servers arrives in TOML that Codex reads, whatever characters it has."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from benchflow_agent_codex.plugin import prepare

from benchflow_core.contracts import AgentContext, McpServer
from benchflow_core.errors import CapabilityMissing


def settings(**more: Any) -> dict[str, Any]:
    launch = prepare(AgentContext("/app", "/root", "root", None, **more))
    return tomllib.loads(launch.files["/root/.codex/config.toml"].decode())


def test_servers_are_required_and_given_time_to_start() -> None:
    near = McpServer("near by.1", "stdio", command="run", args=('a "b" \\', "😀"), env={"A": "x=\n\x7f", "b.c": ""})
    far = McpServer("far", "http", url="http://127.0.0.1:1/mcp", headers={"X-Key": "k"})
    found = settings(mcp_servers=(near, far))["mcp_servers"]
    assert (
        found["near by.1"] | {"command": "run", "args": ['a "b" \\', "😀"], "env": {"A": "x=\n\x7f", "b.c": ""}}
        == found["near by.1"]
    )
    assert found["far"] | {"url": "http://127.0.0.1:1/mcp", "http_headers": {"X-Key": "k"}} == found["far"]
    for server in found.values():
        assert server["required"] is True and server["startup_timeout_sec"] >= 60
    assert "mcp_servers" not in settings()


def test_a_transport_it_does_not_speak_is_refused() -> None:
    with pytest.raises(CapabilityMissing, match="no MCP servers over sse, as 'old' needs"):
        settings(mcp_servers=(McpServer("old", "sse", url="http://127.0.0.1:1/sse"),))
