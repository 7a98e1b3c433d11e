"""The process itself: it asks nothing of the internet, ends with its parent, and thinks as hard as it is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from benchflow_gateway_relay.serving import RelayServer
from benchflow_service_litellm.environment import LiteLLMEnvironment
from benchflow_service_litellm.gateway import TranslatingRelay

from benchflow_core.contracts import GatewayContext, KeyRequest, ModelTarget
from benchflow_core.errors import ConfigurationError, InfrastructureError

pytestmark = [pytest.mark.litellm, pytest.mark.xdist_group("litellm"), pytest.mark.timeout(600)]
PLACES = {"PATH": os.environ["PATH"], "BENCHFLOW_LITELLM_HOME": str(LiteLLMEnvironment.of_process().home)}
CLAUDE = "us.anthropic.claude-opus-4-6-v1"


class Seen:
    """A server that takes every request down: a way out to the internet, or Bedrock."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.bodies: list[Any] = []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path_qs}")
        raw = await request.read()
        if request.method != "POST":
            return web.Response(status=502)
        self.bodies.append(json.loads(raw))
        usage = {"input_tokens": 7, "output_tokens": 5, "inputTokens": 7, "outputTokens": 5, "totalTokens": 12}
        message = {"role": "assistant", "content": [{"text": "hello"}]}
        anthropic = {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "end_turn"}
        anthropic["content"] = [{"type": "text", "text": "hello"}]  # type: ignore[assignment]
        return web.json_response(
            {**anthropic, "output": {"message": message}, "stopReason": "end_turn", "usage": usage}
        )


async def test_it_starts_offline_and_bedrock_gets_the_effort(tmp_path: Path) -> None:
    import aiohttp

    outside, bedrock = Seen(), Seen()
    way_out, cloud = await RelayServer.start(outside.handle), await RelayServer.start(bedrock.handle)
    env = {
        **PLACES,
        "HTTPS_PROXY": f"http://127.0.0.1:{way_out.port}",
        "HTTP_PROXY": f"http://127.0.0.1:{way_out.port}",
        "AWS_BEARER_TOKEN_BEDROCK": "token-of-the-cloud",
        "AWS_REGION": "us-west-2",
        "AWS_BEDROCK_RUNTIME_ENDPOINT": f"http://127.0.0.1:{cloud.port}",
        "BENCHFLOW_BEDROCK_THINKING_EFFORT": "max",
    }
    gateway = TranslatingRelay(GatewayContext(tmp_path, env))
    target = ModelTarget(
        CLAUDE, "aws-bedrock", "messages", "https://bedrock", ("AWS_BEARER_TOKEN_BEDROCK",), auth="aws"
    )
    try:
        async with aiohttp.ClientSession() as http:
            for wire, path in (("messages", "/v1/messages"), ("chat", "/v1/chat/completions")):
                key = await gateway.issue(KeyRequest("r", "agent", (target,), wire))  # type: ignore[arg-type]
                body = {"model": CLAUDE, "max_tokens": 4000, "messages": [{"role": "user", "content": "hi"}]}
                url = f"http://{key.endpoint.host}:{key.endpoint.port}{path}"
                async with http.post(url, json=body, headers={"authorization": f"Bearer {key.secret}"}) as response:
                    assert response.status == 200, await response.text()
                sent = json.dumps(bedrock.bodies[-1])
                assert '"effort": "max"' in sent and "adaptive" in sent, sent
                [exchange] = [e async for e in gateway.exchanges(key.id)]
                assert exchange.usage.input_tokens == 7 and exchange.returned_model is None
                logged = {"messages": exchange.request.get("output_config"), "chat": exchange.request}[wire]
                assert "max" in (logged or {}).values(), "the log has the request as it was sent"
        assert outside.asked == [], "neither prices nor telemetry nor anything else"
    finally:
        await gateway.close()
        await way_out.close()
        await cloud.close()


PARENT = """
import asyncio, json, sys
from pathlib import Path
from benchflow_core.contracts import GatewayContext, KeyRequest, ModelTarget
from benchflow_service_litellm.environment import LiteLLMEnvironment
from benchflow_service_litellm.gateway import TranslatingRelay

async def main():
    env = json.loads(sys.argv[2])
    gateway = TranslatingRelay(GatewayContext(Path(sys.argv[1]), {**env, "K": "k"}))
    await gateway.issue(KeyRequest("r", "agent", (ModelTarget("m", "p", "chat", "http://127.0.0.1:9/v1", ("K",)),), "messages"))
    print(gateway.pool.workers[0].pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_it_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path), json.dumps(PLACES)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while _alive(pid):
        assert time.monotonic() < deadline, "LiteLLM outlived the process that started it"
        time.sleep(0.1)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_one_that_cannot_start_is_said_with_its_last_words(tmp_path: Path) -> None:
    home = tmp_path / "broken"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "litellm").write_text("")
    (home / "bin" / "python").write_text("#!/bin/sh\necho 'no module named litellm' >&2\nexit 3\n")
    (home / "bin" / "python").chmod(0o755)
    gateway = TranslatingRelay(
        GatewayContext(tmp_path / "work", {**PLACES, "BENCHFLOW_LITELLM_HOME": str(home), "K": "k"})
    )
    target = ModelTarget("m", "p", "chat", "http://127.0.0.1:9/v1", ("K",))
    try:
        with pytest.raises(InfrastructureError, match="exited with 3: no module named litellm"):
            await gateway.issue(KeyRequest("r", "agent", (target,), "messages"))
    finally:
        await asyncio.wait_for(gateway.close(), 30)


async def test_wrong_settings_are_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="workers='many'"):
        TranslatingRelay(GatewayContext(tmp_path / "a", {}, options={"workers": "many"}))
    gateway = TranslatingRelay(GatewayContext(tmp_path / "b", {"BENCHFLOW_BEDROCK_THINKING_EFFORT": "huge", "K": "k"}))
    target = ModelTarget("m", "p", "chat", "http://127.0.0.1:9/v1", ("K",))
    with pytest.raises(ConfigurationError, match="'huge' is none of: none, minimal"):
        await gateway.issue(KeyRequest("r", "agent", (target,), "messages"))
    await gateway.close()
