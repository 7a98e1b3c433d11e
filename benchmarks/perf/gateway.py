"""What gateways add to a model call: beside the same call made directly, against the local model, in one run.

LiteLLM is measured where its environment is installed (`scripts/litellm_env.sh`)."""

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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.perf._measure import Measure, main

REQUESTS = 150
PARALLEL = 32
KEYS = 100
LITELLM = 56.0
"""Requests per second of one LiteLLM worker, as measured for this project."""

GATEWAY = """
import asyncio, json, os, sys, time
from importlib import import_module
from pathlib import Path
from benchflow_core.contracts import GatewayContext, KeyRequest, ModelTarget

async def main():
    module, name = sys.argv[3].split(":")
    env = {"KEY": "sk-provider", **{k: v for k, v in os.environ.items() if k in ("PATH", "HOME") or "BENCHFLOW" in k}}
    gateway = getattr(import_module(module), name)(GatewayContext(Path(sys.argv[2]), env))
    target = ModelTarget("local-model", "local", "chat", sys.argv[1] + "/v1", ("KEY",))
    while line := await asyncio.to_thread(sys.stdin.readline):
        began = time.perf_counter()
        keys = [await gateway.issue(KeyRequest("r", "agent", (target,), "chat")) for _ in range(int(line))]
        worker = gateway.pool.workers[0].pid if hasattr(gateway, "pool") else os.getpid()
        seconds = time.perf_counter() - began
        print(json.dumps([keys[0].endpoint.port, [key.secret for key in keys], worker, seconds]), flush=True)
    await gateway.close()

asyncio.run(main())
"""
RELAY, TRANSLATOR = "benchflow_gateway_relay.relay:Relay", "benchflow_service_litellm.gateway:TranslatingRelay"


@dataclass
class Side:
    """A server and a way to ask it."""

    pid: int
    """Of the process whose processor time and memory count."""
    url: str
    keys: list[str]
    started_in: float = 0.0


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
def model() -> Iterator[Side]:
    """The local model, in a process of its own."""
    process = _start("-m", "benchflow_testing", "--log-limit", "1")
    try:
        assert process.stdout is not None
        yield Side(process.pid, f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}", ["any"])
    finally:
        _end(process)


@contextmanager
def gateway(kind: str, direct: Side) -> Iterator[tuple[Side, subprocess.Popen[str]]]:
    """A gateway in front of it, likewise, and its process."""
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as folder:
        process = _start("-c", GATEWAY, direct.url, folder, kind)
        try:
            yield issue(process, 1), process
        finally:
            _end(process)


def _start(*args: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *args], stdin=pipe, stdout=pipe, text=True)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()


def issue(process: subprocess.Popen[str], count: int) -> Side:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{count}\n")
    process.stdin.flush()
    port, keys, pid, seconds = json.loads(process.stdout.readline())
    return Side(int(pid), f"http://127.0.0.1:{port}", list(keys), float(seconds))


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


def added(direct: Side, gateway: Side, stream: bool, runs: int, count: int, limit: float | None) -> list[Measure]:
    """The best of several runs of each side, in turns: a busy moment is not the gateway's."""
    body = prompt(stream)
    found: dict[str, list[list[float]]] = {"direct": [], "gateway": []}
    for _ in range(runs):
        found["direct"].append(asyncio.run(latencies(direct, body, count, 1))[0])
        found["gateway"].append(asyncio.run(latencies(gateway, body, count, 1))[0])

    def best(name: str, share: float) -> float:
        return min(_at(values, share) for values in found[name]) * 1000

    kind = "streamed" if stream else "whole"
    middle, high = (best("gateway", share) - best("direct", share) for share in (0.5, 0.99))
    detail = f"direct {best('direct', 0.5):.2f} ms, {len(body)} byte requests"
    return [
        Measure(f"added latency, {kind}, p50", middle, "ms", limit, detail),
        Measure(f"added latency, {kind}, p99", high, "ms", None, f"direct {best('direct', 0.99):.2f} ms"),
    ]


def throughput(direct: Side, gateway: Side, count: int, runs: int = 3) -> tuple[float, Measure]:
    """Requests per second of the gateway's own processor time: what a core of its own would carry."""
    body = prompt(False)
    _, plain = asyncio.run(latencies(direct, body, count, PARALLEL))
    spent, through = float("inf"), float("inf")
    for _ in range(runs):
        before = cpu_of(gateway.pid)
        _, seconds = asyncio.run(latencies(gateway, body, count, PARALLEL))
        spent, through = min(spent, cpu_of(gateway.pid) - before), min(through, seconds)
    detail = f"{count / through:.0f}/s beside model and client, direct {count / plain:.0f}/s"
    return count / spent, Measure("requests per second and core", count / spent, "/s", None, detail)


async def _hold(gateway: Side, keys: Sequence[str], body: bytes) -> int:
    """Memory of the gateway, in kB, while every key has a stream open."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        open_: list[Any] = []
        for key in keys:
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
            response = await http.post(f"{gateway.url}/v1/chat/completions", data=body, headers=headers)
            await response.content.readany()
            open_.append(response)
        held = memory_of(gateway.pid)
        for response in open_:
            response.close()
    return held


def memory(gateway: Side, process: subprocess.Popen[str]) -> list[Measure]:
    before = memory_of(gateway.pid)
    keys = issue(process, KEYS).keys
    idle = (memory_of(gateway.pid) - before) / KEYS
    held = asyncio.run(_hold(gateway, keys, prompt(True, "[[fake:slow]]")))
    busy = (held - before) / KEYS
    return [
        Measure("memory per idle rollout", max(idle, 0.0), "kB", 2048.0),
        Measure(
            "memory per rollout with a stream", max(busy, 0.0), "kB", 2048.0, f"{KEYS} at once, {before} kB before"
        ),
    ]


def measure(runs: int) -> list[Measure]:
    with model() as direct:
        with gateway(RELAY, direct) as (relay, process):
            found = [Measure("relay: start", relay.started_in * 1000, "ms", None, "once per job")]
            passing = [m for stream in (False, True) for m in added(direct, relay, stream, runs, REQUESTS, 2.0)]
            found += _named("relay", passing)
            rate, measured = throughput(direct, relay, REQUESTS * 10)
            found += _named("relay", [measured, *memory(relay, process)])
        theirs, translated = _litellm(direct)
        detail = f"{theirs:.0f}/s per worker, {LITELLM:.0f}/s on an idle machine"
        share = Measure("LiteLLM's share of the relay's rate", theirs / rate, "x", 0.1, detail)
        return [*found, share, *translated]


def _litellm(direct: Side) -> tuple[float, list[Measure]]:
    """Requests per second of a worker, in this run where it is installed: a busy machine slows both."""
    from benchflow_service_litellm.environment import LiteLLMEnvironment

    if not LiteLLMEnvironment.of_process().installed:
        return LITELLM, []
    with gateway(TRANSLATOR, direct) as (litellm, process):
        found = [Measure("start", litellm.started_in * 1000, "ms", None, "once per job")]
        found += [m for stream in (False, True) for m in added(direct, litellm, stream, 1, REQUESTS // 3, None)]
        rate, measured = throughput(direct, litellm, REQUESTS, runs=1)
        found += [measured, *memory(litellm, process)]
        return rate, _named("litellm", found)


def _named(name: str, measures: Sequence[Measure]) -> list[Measure]:
    return [replace(one, name=f"{name}: {one.name}") for one in measures]


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
