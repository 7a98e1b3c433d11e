"""A model inside a real box that is cut off from the network, and what of our secrets can be found there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchflow_core.contracts import (
    Capability,
    HostEndpoint,
    ImageRef,
    ImageRequest,
    NetworkPolicy,
    Runtime,
    Sandbox,
    SandboxContext,
    StartRequest,
)
from benchflow_core.gateway import Models
from benchflow_core.plugins import registry
from benchflow_core.rollout.choose import choose_sandbox, sandbox_capabilities

ASK = """
import json, sys, urllib.request
url, key, prompt = sys.argv[1], sys.stdin.readline().strip(), sys.argv[2]
body = {"model": "local-model", "stream": True, "messages": [{"role": "user", "content": prompt}]}
headers = {"authorization": "Bearer " + key}
request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), headers)
sys.stdout.write(urllib.request.urlopen(request, timeout=20).read().decode())
"""


class WithoutExpose:
    """A real box that leaves the way in to the core."""

    def __init__(self, box: Sandbox) -> None:
        self._box = box

    def __getattr__(self, name: str) -> Any:
        return getattr(self._box, name)

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        raise NotImplementedError


@pytest_asyncio.fixture
async def box(tmp_path: Path) -> AsyncIterator[tuple[Sandbox, ImageRef]]:
    sandbox, _ = choose_sandbox(registry())
    if Capability.NETWORK_NONE not in sandbox_capabilities(sandbox):
        pytest.skip(f"sandbox {sandbox.name} cannot cut a box off here")
    (tmp_path / "box").mkdir()
    context = SandboxContext(tmp_path / "box", tmp_path / "cache")
    provider = await asyncio.to_thread(sandbox.spec.open, context)
    try:
        request = ImageRequest(image="debian:12", allow_substitute=True)
        image = await provider.prepare(request, (), (Runtime("python", "3.8"),))
        yield await provider.start(image, StartRequest("gateway-test", network=NetworkPolicy("none"))), image
    finally:
        await provider.close()


@pytest.mark.parametrize("way", ["the sandbox's own", "the core's"])
async def test_a_box_without_network_reaches_its_model_and_nothing_else(
    box: tuple[Sandbox, ImageRef],
    way: str,
    open_models: Callable[..., Models],
    model_env: dict[str, str],
    local_model: Any,
) -> None:
    sandbox, image = box
    if way == "the core's":
        sandbox = WithoutExpose(sandbox)  # type: ignore[assignment]
    models = open_models(model_env)
    issued = await models.issue("vllm/local-model", rollout="r", wires=("chat",))
    inside = await models.into_box(issued, sandbox, image.runtimes)

    async def ask(prompt: str) -> Any:
        argv = (image.runtimes["python"], "-c", ASK, inside.base_url, prompt)
        return await sandbox.exec(argv, stdin=f"{inside.key}\n".encode(), timeout=30)

    done = await ask("[[fake:say text=hello-from-inside]]")
    assert done.exit_code == 0, done.stderr
    words = [json.loads(line[6:]) for line in done.stdout.decode().splitlines() if line.startswith("data: {")]
    assert "".join(w["choices"][0]["delta"].get("content") or "" for w in words) == "hello-from-inside"

    direct = f"import socket; socket.create_connection(('127.0.0.1', {local_model.port}), 3)"
    done = await sandbox.exec((image.runtimes["python"], "-c", direct), timeout=30)
    assert done.exit_code != 0 and b"refused" in done.stderr, "the provider itself is out of reach"

    found = await sandbox.exec(
        (
            "sh",
            "-c",
            'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; env; grep -rsl "$NEEDLE" /tmp /root /home /etc /run',
        ),
        env={"NEEDLE": local_model.key[:10]},
        timeout=60,
    )
    assert local_model.key.encode() not in found.stdout, "the provider's key is nowhere in the box"

    await models.revoke(issued)
    done = await ask("hello")
    assert done.exit_code != 0 and b"401" in done.stderr
    await models.leave(sandbox)
