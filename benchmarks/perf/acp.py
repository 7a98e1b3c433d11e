"""The ACP client: ours, written on raw dicts, beside the official SDK's and beside bare pipes and `json`.

The agent is the scripted one, a real program. Every measurement runs in a process of its own, records what it gets to
a file, and checks that all of it arrived.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.perf._measure import Measure, cpu_minima, main

FEW, MANY = 20_000, 200_000


class PipeProcess:
    """The least that an ACP session runs on."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def read(self, limit: int = 65536) -> bytes:
        assert self._process.stdout
        return await self._process.stdout.read(limit)

    async def read_stderr(self, limit: int = 65536) -> bytes:
        return b""

    async def write(self, data: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def close_stdin(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()

    async def wait(self) -> int:
        return await self._process.wait()

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


def _agent(folder: Path, updates: int) -> list[str]:
    import benchflow_agent_scripted
    from benchflow_agent_scripted.script import load_script

    script = load_script(f"- flood: {{count: {updates}, text: 'some words of a message '}}", "perf")
    path = folder / "script.json"
    path.write_text(json.dumps({**script, "version": "perf"}))
    program = Path(benchflow_agent_scripted.__file__).with_name("program") / "agent.py"
    return [sys.executable, "-B", "-E", "-s", "-S", str(program), str(path)]


async def _spawn(agent: list[str]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*agent, stdin=pipe, stdout=pipe)


async def _ours(folder: Path, agent: list[str]) -> dict[str, float]:
    from benchflow_acp import open_session

    from benchflow_core.contracts import AgentSpec, SessionEvent, SessionOptions
    from benchflow_core.results.eventlog import EventLog
    from benchflow_core.results.redact import Redactor

    log = EventLog(folder / "events.jsonl", Redactor(["a-secret-value"]))

    def record(event: SessionEvent) -> None:
        log.write(event.kind, event.data, scene="default", role="agent", turn=1, session="s")

    begin = time.perf_counter()
    process = PipeProcess(await _spawn(agent))
    session = await open_session(process, SessionOptions(cwd="/", emit=record, spec=AgentSpec(summary="perf")))
    opened = time.perf_counter()
    await session.prompt("go")
    done = time.perf_counter()
    await session.close()
    log.close()
    return {"open": opened - begin, "flood": done - opened, "lines": log.count - 1}


async def _sdk(folder: Path, agent: list[str]) -> dict[str, float]:
    """As its users write it: a client object, what it gets written down as JSON."""
    import acp

    with (folder / "events.jsonl").open("w") as file:
        count = 0

        class Client:
            async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
                nonlocal count
                count += 1
                file.write(
                    json.dumps({"time": time.time(), **update.model_dump(by_alias=True, exclude_none=True)}) + "\n"
                )

            def on_connect(self, connection: Any) -> None: ...

        begin = time.perf_counter()
        process = await _spawn(agent)
        connection = acp.connect_to_agent(Client(), process.stdin, process.stdout)
        await connection.initialize(protocol_version=1)
        session = await connection.new_session(cwd="/", mcp_servers=[])
        opened = time.perf_counter()
        await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])
        done = time.perf_counter()
        await connection.close()
        process.kill()
        await process.wait()
    return {"open": opened - begin, "flood": done - opened, "lines": count}


async def _bare(folder: Path, agent: list[str]) -> dict[str, float]:
    """No client at all: lines from a pipe, parsed and written down again."""
    with (folder / "events.jsonl").open("w") as file:
        begin = time.perf_counter()
        process = await _spawn(agent)
        assert process.stdin and process.stdout

        async def ask(number: int, method: str, params: dict[str, Any]) -> int:
            assert process.stdin and process.stdout
            process.stdin.write(
                json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
            )
            count = 0
            while (message := json.loads(await process.stdout.readline())).get("id") != number:
                file.write(json.dumps({"time": time.time(), **message["params"]["update"]}) + "\n")
                count += 1
            return count

        await ask(1, "initialize", {"protocolVersion": 1})
        await ask(2, "session/new", {"cwd": "/", "mcpServers": []})
        opened = time.perf_counter()
        count = await ask(3, "session/prompt", {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]})
        done = time.perf_counter()
        process.kill()
        await process.wait()
    return {"open": opened - begin, "flood": done - opened, "lines": count}


CLIENTS = {"ours": _ours, "sdk": _sdk, "bare": _bare}


def _run(client: str, updates: int) -> dict[str, float]:
    """One client in a process of its own."""
    argv = [sys.executable, "-m", "benchmarks.perf.acp", "--client", client, str(updates)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    found: dict[str, float] = json.loads(subprocess.run(argv, env=env, check=True, capture_output=True).stdout)
    assert found["lines"] == updates, f"{client} recorded {found['lines']} of {updates} updates"
    return found


def _client(name: str, updates: int) -> None:
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as folder:
        found = asyncio.run(CLIENTS[name](Path(folder), _agent(Path(folder), updates)))
        written = sum(1 for _ in (Path(folder) / "events.jsonl").open())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "peak": peak, "lines": min(found["lines"], written)}))


def measure(runs: int) -> list[Measure]:
    imports = cpu_minima(
        {
            "ours": ([sys.executable, "-c", "import benchflow_acp"], None),
            "sdk": ([sys.executable, "-c", "import acp"], None),
        },
        min(runs, 5),
    )
    opens = dict.fromkeys(CLIENTS, float("inf"))
    floods = dict.fromkeys(CLIENTS, float("inf"))
    for _ in range(min(runs, 5)):
        for name in CLIENTS:
            found = _run(name, FEW)
            opens[name] = min(opens[name], found["open"])
            floods[name] = min(floods[name], found["flood"])
    few, many = _run("ours", FEW), _run("ours", MANY)
    rates = {name: FEW / seconds for name, seconds in floods.items()}
    per_10k = many["flood"] * 10_000 / MANY
    return [
        Measure(
            "import, ours / SDK",
            imports["ours"] / imports["sdk"],
            limit=0.5,
            detail=f"{imports['ours'] * 1e3:.0f} ms against {imports['sdk'] * 1e3:.0f} ms CPU",
        ),
        Measure(
            "spawn to session, ours / bare pipes",
            opens["ours"] / opens["bare"],
            limit=2.0,
            detail="{ours:.1f} ms against {bare:.1f} ms; SDK {sdk:.1f} ms".format(
                **{k: v * 1e3 for k, v in opens.items()}
            ),
        ),
        Measure(
            "time per recorded update, ours / SDK",
            floods["ours"] / floods["sdk"],
            limit=0.8,
            detail=f"{rates['ours']:.0f} against {rates['sdk']:.0f} per second; bare {rates['bare']:.0f}",
        ),
        Measure("10,000 recorded updates", per_10k, "s", limit=1.0, detail=f"{MANY / many['flood']:.0f} per second"),
        Measure(
            f"memory that {MANY - FEW} more updates take",
            many["peak"] - few["peak"],
            "MB",
            limit=4.0,
            detail=f"peak {many['peak']:.0f} MB",
        ),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        _client(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main({"acp": measure}))
