"""In a real box: files and terminals as the agent's user, and a session over the sandbox's own processes."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from benchflow_acp import AcpSession, open_session
from benchflow_agent_scripted.plugin import benchflow_agent

from benchflow_core.contracts import (
    AgentContext,
    ClientFiles,
    ImageRequest,
    Sandbox,
    SandboxContext,
    SessionEvent,
    SessionOptions,
    StartRequest,
)
from benchflow_core.plugins import registry

SPEC = benchflow_agent()


class Boxed:
    """A box with the scripted agent's layer in it."""

    def __init__(self, box: Sandbox, runtimes: Any, root: Path) -> None:
        self.box, self.root, self._runtimes = box, root, runtimes
        self.user = "nobody" if "nobody" in box.info.users else box.info.default_user
        self.events: list[SessionEvent] = []
        self._sessions: list[AcpSession] = []

    async def session(self, script: str, **options: Any) -> AcpSession:
        home, user = "/tmp", self.user
        context = AgentContext(
            workdir="/app",
            home=home,
            user=user,
            prefix=SPEC.layers[0].prefix,
            runtimes=self._runtimes,
            options={"script": script},
        )
        assert SPEC.prepare is not None
        launch = SPEC.prepare(context)
        for path, content in launch.files.items():
            with tempfile.NamedTemporaryFile() as staged:
                staged.write(content)
                staged.flush()
                await self.box.upload(Path(staged.name), path, user=user, mode=0o600)
        process = await self.box.spawn(launch.argv, cwd="/app", env=launch.env, user=user)
        given = {"handshake_timeout": 20.0, "cancel_grace": 1.0, **options}
        session = await open_session(process, SessionOptions(cwd="/app", emit=self.events.append, spec=SPEC, **given))
        self._sessions.append(session)
        return session

    def files(self, **changes: Any) -> ClientFiles:
        return ClientFiles(self.box, self.user, "/tmp", **changes)

    def results(self) -> list[Any]:
        return [e.data.get("result", e.data.get("error")) for e in self.events if e.kind == "client_request"]

    async def sh(self, command: str) -> str:
        done = await self.box.exec(["sh", "-c", command])
        assert done.exit_code == 0, done.stderr
        return done.stdout.decode().strip()

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()


@pytest.fixture
async def boxed(tmp_path: Path) -> AsyncIterator[Boxed]:
    (tmp_path / "work").mkdir()
    context = SandboxContext(work_dir=tmp_path / "work", cache_dir=tmp_path / "cache")
    provider = registry().get("sandbox", "local").spec.open(context)
    try:
        request = ImageRequest(image="debian:bookworm", allow_substitute=True)
        image = await provider.prepare(request, SPEC.layers, SPEC.runtimes)
        boxed = Boxed(await provider.start(image, StartRequest(name="acp")), image.runtimes, tmp_path)
        yield boxed
        await boxed.close()
    finally:
        await provider.close()


async def calls(boxed: Boxed, *steps: tuple[str, dict[str, Any]], **options: Any) -> list[Any]:
    """What the client answers to these methods, asked by an agent in the box."""
    script = [{"call": {"method": method, "params": params}} for method, params in steps]
    session = await boxed.session(json.dumps(script), client_files=boxed.files(), **options)
    assert (await session.prompt("go")).stop_reason == "end_turn"
    return boxed.results()


async def test_files_are_read_and_written_as_the_agents_user(boxed: Boxed) -> None:
    if boxed.user == "root":
        pytest.skip("needs a second user in the box, which one mapped id does not have")
    await boxed.sh("echo for-root-only > /etc/secret; chmod 600 /etc/secret; printf 'a\\nb\\nc\\n' > /tmp/lines")
    found = await calls(
        boxed,
        ("fs/write_text_file", {"path": "/tmp/new/dir/f.txt", "content": "über\n"}),
        ("fs/read_text_file", {"path": "/tmp/new/dir/f.txt"}),
        ("fs/read_text_file", {"path": "/tmp/lines", "line": 2, "limit": 1}),
        ("fs/read_text_file", {"path": "/tmp/nothing"}),
        ("fs/read_text_file", {"path": "/etc/secret"}),
        ("fs/write_text_file", {"path": "/etc/passwd", "content": "root::0:0::/:/bin/sh\n"}),
        ("fs/read_text_file", {"path": "relative"}),
        ("fs/read_text_file", {"path": "/dev/zero"}),
        ("fs/read_text_file", {}),
        ("fs/write_text_file", {"path": "/tmp/x", "content": 5}),
    )
    assert found[:3] == [{}, {"content": "über\n"}, {"content": "b\n"}]
    assert found[3] == "Resource not found: /tmp/nothing"
    assert "ermission denied" in found[4] and "ermission denied" in found[5]
    assert found[6:] == [
        "path must be absolute",
        "/dev/zero: not a regular file",
        "path must be absolute",
        "content must be text",
    ]
    assert await boxed.sh("stat -c %U /tmp/new/dir/f.txt") == "nobody"
    assert await boxed.sh("head -1 /etc/passwd") != "root::0:0::/:/bin/sh"


async def test_nothing_of_it_happens_on_the_host(boxed: Boxed) -> None:
    target = f"{boxed.root}/on-the-host"
    await calls(
        boxed,
        ("fs/write_text_file", {"path": f"/tmp{target}", "content": "x"}),
        ("terminal/create", {"command": f"mkdir -p /tmp{boxed.root} && touch /tmp{target}.terminal && sleep 0.2"}),
        ("terminal/wait_for_exit", {"terminalId": "terminal-1"}),
    )
    assert not Path(target).exists() and not Path(f"/tmp{target}").exists()
    assert "on-the-host.terminal" in await boxed.sh(f"ls /tmp{boxed.root}")


async def test_terminals(boxed: Boxed) -> None:
    found = await calls(
        boxed,
        (
            "terminal/create",
            {"command": "id -un; echo oops >&2; pwd; echo $X; exit 3", "env": [{"name": "X", "value": "y"}]},
        ),
        ("terminal/wait_for_exit", {"terminalId": "terminal-1"}),
        ("terminal/output", {"terminalId": "terminal-1"}),
        (
            "terminal/create",
            {"command": "sh", "args": ["-c", "printf 'äöü'; sleep 600"], "cwd": "/", "outputByteLimit": 5},
        ),
        ("terminal/create", {"command": "no-such-program", "args": ["x"]}),
        ("terminal/wait_for_exit", {"terminalId": "terminal-3"}),
        ("terminal/output", {"terminalId": "terminal-2"}),
        ("terminal/kill", {"terminalId": "terminal-2"}),
        ("terminal/wait_for_exit", {"terminalId": "terminal-2"}),
        ("terminal/release", {"terminalId": "terminal-2"}),
        ("terminal/output", {"terminalId": "terminal-2"}),
        ("terminal/create", {"command": ["ls"]}),
        ("terminal/output", {"terminalId": ["x"]}),
    )
    assert found[0] == {"terminalId": "terminal-1"} and found[1] == {"exitCode": 3, "signal": None}
    assert found[2] == {
        "output": f"{boxed.user}\noops\n/tmp\ny\n",
        "truncated": False,
        "exitStatus": {"exitCode": 3, "signal": None},
    }
    assert found[5] == {"exitCode": 127, "signal": None}
    assert found[6] == {"output": "öü", "truncated": True}  # five bytes would begin inside a character
    assert found[8] == {"exitCode": None, "signal": "SIGKILL"}
    assert found[10] == "Resource not found: terminal-2"
    assert "must be text" in found[11] and found[12].startswith("Resource not found")
    from acp import schema  # takes half a second of every worker that collects this file

    for model, data in (
        (schema.CreateTerminalResponse, found[0]),
        (schema.WaitForTerminalExitResponse, found[1]),
        (schema.TerminalOutputResponse, found[2]),
    ):
        model.model_validate(data)


async def test_what_is_enabled_is_advertised_and_nothing_else(boxed: Boxed) -> None:
    script = json.dumps([{"call": {"method": "terminal/create", "params": {"command": "ls"}}}])
    session = await boxed.session(script, client_files=boxed.files(terminal=False))
    await session.prompt("go")
    assert boxed.results() == ["Method not found: terminal/create"]


async def test_closing_ends_the_terminals(boxed: Boxed) -> None:
    before = sorted(await boxed.box.processes())
    script = json.dumps([{"call": {"method": "terminal/create", "params": {"command": "sleep 600"}}}, "hang"])
    session = await boxed.session(script, client_files=boxed.files())
    turn = asyncio.create_task(session.prompt("go"))
    async with asyncio.timeout(20):
        while not boxed.results():
            await asyncio.sleep(0.05)
        await session.close()
        await asyncio.gather(turn, return_exceptions=True)
        while sorted(await boxed.box.processes()) != before:
            await asyncio.sleep(0.05)


async def test_a_crash_and_a_kill_in_the_box(
    boxed: Boxed, within: Callable[[float, Awaitable[Any]], Awaitable[Any]]
) -> None:
    session = await boxed.session("[{stderr: boom}, {background: 'sleep 600'}, {crash: 7}]")
    with pytest.raises(Exception, match=r"code 7: boom"):
        await within(5, session.prompt("go"))
    session = await boxed.session("[ignore_cancel, {run: 'sleep 600'}]")
    turn = asyncio.create_task(session.prompt("go"))
    await asyncio.sleep(0.5)
    await within(10, session.cancel())
    assert (await turn).stop_reason == "cancelled"


async def test_a_flood_through_the_box(boxed: Boxed) -> None:
    session = await boxed.session("[{flood: 20000}]")
    await session.prompt("go")
    assert sum(e.kind == "agent_message_chunk" for e in boxed.events) == 20000


async def test_a_server_lives_on_in_the_box(boxed: Boxed) -> None:
    session = await boxed.session(
        "[{background: 'while :; do date +%s%N > /tmp/clock; sleep 0.05; done'}, {wait: 0.3}]"
    )
    await session.prompt("go")
    assert await session.leave()
    first = await boxed.sh("cat /tmp/clock")
    await asyncio.sleep(0.4)
    assert await boxed.sh("cat /tmp/clock") != first
