"""`--auth native` with real agents: each takes the login of the host as its own program left it there.

Gemini's goes to Google's own hosts by way of more than a base URL, and is tried by hand.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchflow_wires import Tunnel

from benchflow_core.contracts import HostEndpoint

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
TOKEN = "token-of-the-host-1234567890abcdef"
CLAUDE = {"accessToken": TOKEN, "refreshToken": f"{TOKEN}-2", "expiresAt": 4102444800000, "scopes": ["user:inference"]}
LOGINS: dict[str, tuple[str, Any, str]] = {
    "claude": (".claude/.credentials.json", {"claudeAiOauth": CLAUDE}, "anthropic/claude-sonnet-4-5"),
    "codex": (".codex/auth.json", {"auth_mode": "apikey", "OPENAI_API_KEY": TOKEN}, "openai/gpt-5"),
    "opencode": (
        ".local/share/opencode/auth.json",
        {"anthropic": {"type": "api", "key": TOKEN}},
        "anthropic/claude-sonnet-4-5",
    ),
    "pi": (".pi/agent/auth.json", {"anthropic": {"type": "api_key", "key": TOKEN}}, "anthropic/claude-sonnet-4-5"),
}


def pointed(agent: str, url: str) -> dict[str, str]:
    """What sends an agent that uses its own login to another address than its provider's."""
    opencode = {"provider": {"anthropic": {"options": {"baseURL": f"{url}/v1"}}}}
    return {
        "claude": {"ANTHROPIC_BASE_URL": url},
        "codex": {"CODEX_CONFIG": json.dumps({"openai_base_url": f"{url}/v1"})},
        "opencode": {"OPENCODE_CONFIG_CONTENT": json.dumps(opencode)},
    }.get(agent, {})


@pytest.mark.parametrize(
    "agent", [pytest.param(name, marks=pytest.mark.xdist_group(f"agent-{name}")) for name in LOGINS]
)
async def test_a_login_of_the_host_is_used_and_leaves_nothing(connect, local_model, tmp_path, agent):
    path, login, model = LOGINS[agent]
    on_host = tmp_path / "home" / path
    on_host.parent.mkdir(parents=True)
    on_host.write_text(json.dumps(login))
    opened: list[Tunnel] = []

    async def before(rollout: Any) -> None:
        endpoint = HostEndpoint("127.0.0.1", local_model.port)
        opened.append(await Tunnel.open(rollout.sandbox, endpoint, rollout.image.runtimes))
        rollout.config.agent_env.update(pointed(agent, opened[0].url))
        (tmp_path / "models.json").write_text(json.dumps({"providers": {"anthropic": {"baseUrl": opened[0].url}}}))
        await rollout.sandbox.upload(tmp_path / "models.json", "/root/.pi/agent/models.json")

    given = {"HOME": str(tmp_path / "home"), "ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}
    live = await connect(agent, model, auth="native", agent_env={}, env_more=given, before=before)
    box = live.rollout.sandbox
    try:
        assert (await box.exec(("stat", "-c", "%a", f"/root/{path}"))).stdout == b"600\n"
        assert await live.prompt("[[fake:write-hello path=/app/made.txt]]") == "end_turn"
        assert await live.read("/app/made.txt") == "hello from the local model\n"
        await live.rollout.disconnect()
        left = await box.exec(("grep", "-rl", TOKEN, "/root", "/app", "/logs", "/tmp"))
        assert left.stdout == b"", "the login, or a copy of it, is still in the box"
    finally:
        await opened[0].close()
    assert {seen.credential for seen in local_model.log if seen.wire} == {TOKEN}
    result = await live.rollout.cleanup()
    assert "native-auth" in result.flags and result.usage.source in ("agent_native_acp", "unavailable")
    assert result.usage.source == "unavailable" or not result.usage.complete, "agents leave calls out of their counts"
    assert TOKEN.encode() not in b"".join(p.read_bytes() for p in result.rollout_dir.rglob("*") if p.is_file())
