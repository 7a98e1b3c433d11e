"""Real processes over real pipes: the smallest `Process` there can be, and agents to talk to."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from benchflow_acp import AcpSession, open_session
from benchflow_agent_scripted.script import load_script

from benchflow_core.contracts import AgentSpec, Launch, SessionEvent, SessionOptions
from benchflow_core.errors import TransportError


class PipeProcess:
    """`contracts.sandboxes.Process` over a subprocess of the host. Remembers what was written to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.sent = bytearray()
        self.also: list[int] = []
        """Process groups that the agent made: a real sandbox knows them."""

    @classmethod
    async def start(cls, *argv: str, cwd: Path | None = None) -> PipeProcess:
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                *argv, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self, limit: int = 65536) -> bytes:
        assert self._process.stdout
        return await self._process.stdout.read(limit)

    async def read_stderr(self, limit: int = 65536) -> bytes:
        assert self._process.stderr
        return await self._process.stderr.read(limit)

    async def write(self, data: bytes) -> None:
        assert self._process.stdin
        self.sent += data
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise TransportError("the process is gone.") from error

    async def close_stdin(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()

    async def wait(self) -> int:
        """Not asyncio's own: before Python 3.13 it also waits for every child that holds a pipe."""
        while self._process.returncode is None:
            await asyncio.sleep(0.005)
        return self._process.returncode

    async def kill(self) -> None:
        for group in (self._process.pid, *self.also):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        await self.wait()
        self._process._transport.close()  # type: ignore[attr-defined]

    def alive(self) -> bool:
        return self._process.returncode is None

    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in bytes(self.sent).splitlines()]


class Bench:
    """Starts agents and sessions; whatever is left over is ended after the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events: list[SessionEvent] = []
        self.processes: list[PipeProcess] = []
        self._sessions: list[AcpSession] = []

    async def process(self, *argv: str) -> PipeProcess:
        process = await PipeProcess.start(*argv, cwd=self.root)
        self.processes.append(process)
        return process

    async def open(self, *argv: str, **options: Any) -> AcpSession:
        process = await self.process(*argv)
        spec = options.pop("spec", None) or AgentSpec(summary="test", prepare=lambda c: Launch(argv=argv))
        emit = options.pop("emit", self.events.append)
        given = {"handshake_timeout": 20.0, "cancel_grace": 1.0, **options}
        session = await open_session(process, SessionOptions(cwd=str(self.root), emit=emit, spec=spec, **given))
        self._sessions.append(session)
        return session

    async def scripted(self, script: str, **options: Any) -> AcpSession:
        return await self.open(*self.scripted_argv(script, **options.pop("settings", {})), **options)

    def scripted_argv(self, script: str, **settings: Any) -> tuple[str, ...]:
        import benchflow_agent_scripted

        program = Path(benchflow_agent_scripted.__file__).with_name("program") / "agent.py"
        path = self.root / f"script-{len(self.processes)}.json"
        data = load_script(textwrap.dedent(script), "script")
        path.write_text(json.dumps({**data, "version": "1", "role": "agent", "model": None, **settings}))
        return (sys.executable, "-B", "-E", "-s", "-S", str(program), str(path))

    async def raw(self, body: str, *, before: str = "", **options: Any) -> AcpSession:
        """An agent written by hand: `before` runs first, `body` for each prompt; both may use what RAW_AGENT has."""
        return await self.open(*self.raw_argv(body, before), **options)

    def raw_argv(self, body: str, before: str = "") -> tuple[str, ...]:
        path = self.root / f"agent-{len(self.processes)}.py"
        code = RAW_AGENT.replace("#BEFORE#", textwrap.dedent(before))
        path.write_text(code.replace("#BODY#", textwrap.indent(textwrap.dedent(body), "    ")))
        return (sys.executable, "-S", str(path))

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def of(self, kind: str) -> list[Any]:
        return [event.data for event in self.events if event.kind == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(data["content"]["text"] for data in self.of(kind))

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        for process in self.processes:
            await process.kill()


RAW_AGENT = """
import json, os, sys, time

def raw(data):
    sys.stdout.buffer.write(data if isinstance(data, bytes) else data.encode())
    sys.stdout.buffer.flush()

def send(message):
    raw(json.dumps(message) + "\\n")

def answer(result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})

def update(kind="agent_message_chunk", **data):
    data = data or {"content": {"type": "text", "text": "hi"}}
    send({"jsonrpc": "2.0", "method": "session/update",
          "params": {"sessionId": "s1", "update": {"sessionUpdate": kind, **data}}})

def receive():
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)

def prompt():
#BODY#

#BEFORE#
while True:
    request = receive()
    method = request.get("method")
    if method == "initialize":
        answer({"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        answer({"sessionId": "s1"})
    elif method == "session/prompt":
        prompt()
"""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    await bench.close()


@pytest.fixture
def within() -> Callable[[float, Awaitable[Any]], Awaitable[Any]]:
    """Fails instead of hanging."""

    async def limited(seconds: float, work: Awaitable[Any]) -> Any:
        async with asyncio.timeout(seconds):
            return await work

    return limited
