"""Starting a real agent on a warm layer, from nothing to a session, against the same program started by hand.

By hand: the same files on this machine, no box, no gateway, no log: spawn, `initialize`, `session/new`. Ours: a key and
the gateway shown in the box, the agent's settings written, the process, the handshake, the record of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.perf._measure import Measure

TASK = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
AGENTS = {
    "pi": "anthropic/m",
    "opencode": "vllm/m",
    "claude": "anthropic/m",
    "codex": "openai/m",
    "gemini": "gemini/m",
}
MOST_RUNS = 5
LIMIT = 1.2


def _asked(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


async def _answer(stream: asyncio.StreamReader, number: int) -> None:
    while line := await stream.readline():
        with suppress(ValueError):
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                assert "result" in message, message
                return
    raise RuntimeError("the agent ended")


def _moved(text: str, here: Mapping[str, str]) -> str:
    """In one go: what was replaced is not looked at again."""
    longest_first = sorted(here, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda found: here[found[0]], text)


async def _by_hand(launch: Any, here: Mapping[str, str], folder: Path) -> float:
    """Seconds from the spawn to an open session."""

    def local(text: str) -> str:
        return _moved(text, here)

    for path, content in launch.files.items():
        file = Path(local(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(local(content.decode()))
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **{k: local(v) for k, v in launch.env.items()}}
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *map(local, launch.argv),
        cwd=folder,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 26,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(_asked(0, "initialize", protocolVersion=1, clientCapabilities={}))
        await _answer(process.stdout, 0)
        process.stdin.write(_asked(1, "session/new", cwd=str(folder), mcpServers=[]))
        await _answer(process.stdout, 1)
        return time.perf_counter() - begun
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()


async def _in_a_box(agent: str, model: str, host: Any, work: Path) -> tuple[float, Any]:
    """Seconds for `connect`, and the rollout, which holds the image and the context."""
    from benchflow_core.rollout import Rollout, RolloutConfig

    config = RolloutConfig(TASK, agent=agent, model=model, sandbox="local", jobs_dir=work / "jobs")
    rollout = await Rollout.create(config, host)
    try:
        await rollout.setup()
        await rollout.start()
        await rollout.install_agent()
        begun = time.perf_counter()
        await rollout.connect()
        return time.perf_counter() - begun, rollout
    finally:
        await rollout.cleanup()


def _here(rollout: Any, spec: Any, folder: Path) -> dict[str, str]:
    """Paths of the box to those of the same files here."""
    layers = rollout.host.cache / "sandboxes" / "local" / "sandbox-local"
    found = {prefix: str(layers / name) for prefix, name in rollout.image.meta["shown"].items()}
    for layer in spec.layers:
        for name, content in layer.files.items():
            text = _moved(content.decode(), found)
            file = folder / "files" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)
            found[f"{layer.prefix}/{name}"] = str(file)
    return {**found, rollout.agent_home: str(folder)}


async def _measure(runs: int) -> list[Measure]:
    from benchflow_testing import LocalModel

    from benchflow_core.contracts import AgentContext, ModelEndpoint
    from benchflow_core.rollout import Host

    found = []
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as temporary:
        work = Path(temporary)
        async with LocalModel() as model:
            url = model.base_url
            env = {**os.environ, "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
            env |= {"OPENAI_BASE_URL": f"{url}/v1", "BENCHFLOW_PROVIDER_BASE_URL": f"{url}/v1"}
            env |= dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "sk-local")
            async with Host(env=env) as host:
                for agent, name in AGENTS.items():
                    _, rollout = await _in_a_box(agent, name, host, work)
                    spec = rollout.plan.agents[agent].spec
                    endpoint = ModelEndpoint(url, "sk-local", spec.wires[0], "m")
                    ours = hand = float("inf")
                    for run in range(min(runs, MOST_RUNS)):
                        folder = work / f"{agent}-{run}"
                        folder.mkdir()
                        context = AgentContext("/app", rollout.agent_home, "root", None, model=name, endpoint=endpoint)
                        hand = min(hand, await _by_hand(spec.prepare(context), _here(rollout, spec, folder), folder))
                        ours = min(ours, (await _in_a_box(agent, name, host, work))[0])
                    detail = f"{ours:.2f} s against {hand:.2f} s"
                    found.append(Measure(f"{agent}: to a session / by hand", ours / hand, "x", LIMIT, detail))
    return found


def measure(runs: int) -> list[Measure]:
    return asyncio.run(_measure(runs))
