"""What the relay adds to a model call: beside the same call made directly, against the local model, in one run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.perf._measure import Measure, main

REQUESTS = 150
PARALLEL = 32
KEYS = 100
LITELLM = 56.0
"""Requests per second of one LiteLLM worker, as measured for this project."""

RELAY = """
import asyncio, json, sys
from pathlib import Path
from benchflow_core.contracts import GatewayContext, KeyRequest, ModelTarget
from benchflow_gateway_relay.relay import Relay

async def main():
    relay = Relay(GatewayContext(Path(sys.argv[2]), {"KEY": "sk-provider"}))
    target = ModelTarget("local-model", "local", "chat", sys.argv[1] + "/v1", ("KEY",))
    while line := await asyncio.to_thread(sys.stdin.readline):
        keys = [await relay.issue(KeyRequest("r", "agent", (target,), "chat")) for _ in range(int(line))]
        print(json.dumps([keys[0].endpoint.port, [key.secret for key in keys]]), flush=True)
    await relay.close()

asyncio.run(main())
"""


@dataclass
class Side:
    """A server and a way to ask it."""

    pid: int
    url: str
    keys: list[str]


def prompt(stream: bool, words: str = "[[fake:say text=a-short-answer-of-a-few-words]]") -> bytes:
    """40 kB, as agents send them: tools with schemas and a conversation."""
    fields = {f"field{n}": {"type": "string", "description": "what it is for " * 4} for n in range(6)}
    schema = {"type": "object", "properties": fields}
    tools = [
        {"type": "function", "function": {"name": f"tool{n}", "description": "does it. " * 30, "parameters": schema}}
        for n in range(16)
    ]
    said = [{"role": ("user", "assistant")[n % 2], "content": "some words " * 50} for n in range(40)]
    said.append({"role": "user", "content": words})
    return json.dumps({"model": "local-model", "stream": stream, "messages": said, "tools": tools}).encode()


@contextmanager
def sides() -> Iterator[tuple[Side, Side, subprocess.Popen[str]]]:
    """The model, the relay in front of it, and the relay's process: one process each."""
    model = _start("-m", "benchflow_testing", "--log-limit", "1")
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as folder:
        relay = None
        try:
            assert model.stdout is not None
            base = f"http://127.0.0.1:{json.loads(model.stdout.readline())['port']}"
            relay = _start("-c", RELAY, base, folder)
            port, keys = issue(relay, 1)
            yield Side(model.pid, base, ["any"]), Side(relay.pid, f"http://127.0.0.1:{port}", keys), relay
        finally:
            for process in (relay, model):
                if process is not None:
                    process.terminate()
                    process.wait()


def _start(*args: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *args], stdin=pipe, stdout=pipe, text=True)


def issue(relay: subprocess.Popen[str], count: int) -> tuple[int, list[str]]:
    assert relay.stdin is not None and relay.stdout is not None
    relay.stdin.write(f"{count}\n")
    relay.stdin.flush()
    port, keys = json.loads(relay.stdout.readline())
    return int(port), list(keys)


async def latencies(side: Side, body: bytes, count: int, parallel: int) -> tuple[list[float], float]:
    """Seconds of each request, sorted, and of all of them together."""
    import aiohttp

    found: list[float] = []
    headers = {"authorization": f"Bearer {side.keys[0]}", "content-type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:

        async def worker(share: int) -> None:
            for _ in range(share):
                began = time.perf_counter()
                async with http.post(f"{side.url}/v1/chat/completions", data=body, headers=headers) as response:
                    await response.read()
                    assert response.status == 200, response.status
                found.append(time.perf_counter() - began)

        await worker(10)
        found.clear()
        began = time.perf_counter()
        await asyncio.gather(*(worker(count // parallel) for _ in range(parallel)))
        return sorted(found), time.perf_counter() - began


def added(direct: Side, relay: Side, stream: bool, runs: int) -> list[Measure]:
    """The best of several runs of each side, in turns: a busy moment is not the relay's."""
    body = prompt(stream)
    found: dict[str, list[list[float]]] = {"direct": [], "relay": []}
    for _ in range(runs):
        found["direct"].append(asyncio.run(latencies(direct, body, REQUESTS, 1))[0])
        found["relay"].append(asyncio.run(latencies(relay, body, REQUESTS, 1))[0])

    def best(name: str, share: float) -> float:
        return min(_at(values, share) for values in found[name]) * 1000

    kind = "streamed" if stream else "whole"
    middle, high = (best("relay", share) - best("direct", share) for share in (0.5, 0.99))
    detail = f"direct {best('direct', 0.5):.2f} ms, {len(body)} byte requests"
    return [
        Measure(f"added latency, {kind}, p50", middle, "ms", 2.0, detail),
        Measure(f"added latency, {kind}, p99", high, "ms", None, f"direct {best('direct', 0.99):.2f} ms"),
    ]


def throughput(direct: Side, relay: Side) -> list[Measure]:
    """Requests per second of the relay's own processor time: what a core of its own would carry."""
    body, count = prompt(False), REQUESTS * 10
    _, plain = asyncio.run(latencies(direct, body, count, PARALLEL))
    spent, through = float("inf"), float("inf")
    for _ in range(3):
        before = cpu_of(relay.pid)
        _, seconds = asyncio.run(latencies(relay, body, count, PARALLEL))
        spent, through = min(spent, cpu_of(relay.pid) - before), min(through, seconds)
    per_second = count / spent
    detail = f"{count / through:.0f}/s beside model and client, direct {count / plain:.0f}/s"
    return [
        Measure("requests per second and core", per_second, "/s", None, detail),
        Measure("LiteLLM's share of that", LITELLM / per_second, "x", 0.1, f"{LITELLM:.0f}/s per worker"),
    ]


async def _hold(relay: Side, keys: Sequence[str], body: bytes) -> int:
    """Memory of the relay, in kB, while every key has a stream open."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        open_: list[Any] = []
        for key in keys:
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
            response = await http.post(f"{relay.url}/v1/chat/completions", data=body, headers=headers)
            await response.content.readany()
            open_.append(response)
        held = memory_of(relay.pid)
        for response in open_:
            response.close()
    return held


def memory(relay: Side, process: subprocess.Popen[str]) -> list[Measure]:
    before = memory_of(relay.pid)
    _, keys = issue(process, KEYS)
    idle = (memory_of(relay.pid) - before) / KEYS
    held = asyncio.run(_hold(relay, keys, prompt(True, "[[fake:slow]]")))
    busy = (held - before) / KEYS
    return [
        Measure("memory per idle rollout", max(idle, 0.0), "kB", 2048.0),
        Measure(
            "memory per rollout with a stream", max(busy, 0.0), "kB", 2048.0, f"{KEYS} at once, {before} kB before"
        ),
    ]


def measure(runs: int) -> list[Measure]:
    with sides() as (direct, relay, process):
        found = [m for stream in (False, True) for m in added(direct, relay, stream, runs)]
        return [*found, *throughput(direct, relay), *memory(relay, process)]


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def _at(values: list[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)]


if __name__ == "__main__":
    sys.exit(main({"gateway": measure}))
