"""The oracle and nop in a real box."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchflow_agent_oracle import nop, oracle
from benchflow_testing_kit.resolve import resolve

from benchflow_core.contracts import (
    AgentContext,
    ImageRequest,
    RewardFiles,
    Sandbox,
    SandboxContext,
    SessionContext,
    SessionEvent,
    Solution,
    StartRequest,
    Step,
    Task,
)
from benchflow_core.errors import AgentTimeout, TaskError

Make = Callable[..., SessionContext]


class Dialect:
    """Never asked: nothing is verified here."""

    name = "none"
    wants = ()

    def parse(self, found: RewardFiles) -> dict[str, float]:
        return {}

    def combine(self, steps: object) -> dict[str, float]:
        return {}


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Sandbox]:
    (tmp_path / "work").mkdir()
    provider = resolve("sandbox", "local").spec.open(SandboxContext(tmp_path / "work", tmp_path / "cache"))
    image = await provider.prepare(ImageRequest(image="debian:bookworm", allow_substitute=True))
    yield await provider.start(image, StartRequest(name="oracle"))
    await provider.close()


@pytest.fixture
def events() -> list[SessionEvent]:
    return []


@pytest.fixture
def context(box: Sandbox, tmp_path: Path, events: list[SessionEvent]) -> Make:
    """A session's context for a task with this `solve.sh`."""

    def make(
        script: str | None,
        *,
        user: str = "root",
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        step: str | None = None,
    ) -> SessionContext:
        folder = tmp_path / f"solution-{step}"
        folder.mkdir(exist_ok=True)
        if script is not None:
            (folder / "solve.sh").write_text(script)
            (folder / "solve.sh").chmod(0o644)
        (folder / f"notes-{step}.txt").write_text("secret")
        solution = Solution(dir=folder, timeout=timeout)
        steps = (Step(step, "do it", solution=solution),) if step else ()
        task = Task("hello", tmp_path, "test", "do it", Dialect(), solution=None if step else solution, steps=steps)
        agent = AgentContext(
            workdir="/app", home="/root", user=user, prefix=None, env={"HOME": "/root", "FROM": "agent"}
        )
        return SessionContext(box, task, steps[0] if steps else None, agent, events.append, "/logs/agent", env or {})

    return make


async def sh(box: Sandbox, command: str, **options: Any) -> str:
    done = await box.exec(["sh", "-c", command], **options)
    assert done.exit_code == 0, done.stderr
    return done.stdout.decode().strip()


async def test_the_solution_is_played(box: Sandbox, context: Make, events: list[SessionEvent]) -> None:
    script = "#!/bin/bash\nset -e\n[[ -f $(dirname $0)/notes-None.txt ]]\npwd; echo $X $FROM $DEBIAN_FRONTEND\n"
    script += "echo oops >&2\necho hi > hello.txt\n"
    session = await oracle.connect(context(script, env={"X": "from-solution", "FROM": "solution"}))
    assert await sh(box, "ls -A /solution") == ""  # not before the turn
    outcome = await session.prompt("whatever")
    assert outcome.stop_reason == "end_turn" and outcome.data["exit_code"] == 0
    assert await sh(box, "cat /app/hello.txt") == "hi"
    said = "/app\nfrom-solution solution noninteractive\noops"
    assert await sh(box, "cat /logs/agent/oracle.txt") == said
    assert [e.kind for e in events] == ["tool_call", "tool_call_update"]
    assert events[0].data["rawInput"] == {"command": "/solution/solve.sh", "cwd": "/app", "user": "root"}
    assert events[1].data["status"] == "completed" and events[1].data["rawOutput"]["output"].strip() == said
    assert await sh(box, "stat -c '%a %U' /solution") == "700 root"
    await session.close()


def need(box: Sandbox, user: str) -> None:
    if user not in box.info.users:
        pytest.skip(f"needs a second user in the box: {user}")


async def test_as_another_user(box: Sandbox, context: Make) -> None:
    need(box, "nobody")
    session = await oracle.connect(context("#!/bin/sh\nid -un\necho done > /tmp/done\n", user="nobody"))
    assert (await session.prompt("go")).data["exit_code"] == 0
    assert await sh(box, "cat /logs/agent/oracle.txt") == "nobody"
    assert await sh(box, "stat -c %U /tmp/done") == "nobody"
    assert await sh(box, "stat -c '%a %u' /solution") == "700 0"
    assert (await box.exec(["cat", "/solution/solve.sh"], user="nobody")).exit_code != 0


async def test_a_script_without_a_first_line_is_bash(box: Sandbox, context: Make) -> None:
    session = await oracle.connect(context('[[ "a" == a ]] && echo $BASH_VERSION > /app/version'))
    assert (await session.prompt("go")).data["exit_code"] == 0
    assert await sh(box, "cat /app/version")


@pytest.mark.parametrize("code", [1, 97, 255])
async def test_a_script_that_fails_still_ends_its_turn(context: Make, events: list[SessionEvent], code: int) -> None:
    session = await oracle.connect(context(f"#!/bin/sh\necho partly; exit {code}\n"))
    outcome = await session.prompt("go")
    assert outcome.stop_reason == "end_turn" and outcome.data["exit_code"] == code
    assert events[-1].data["status"] == "failed" and events[-1].data["rawOutput"]["exit_code"] == code


async def test_a_script_that_never_ran_is_not_one_that_failed(context: Make) -> None:
    whole = context("#!/bin/sh\n")
    session = await oracle.connect(replace(whole, agent=replace(whole.agent, workdir="/nowhere")))
    with pytest.raises(TaskError, match="could not be made ready"):
        await session.prompt("go")


async def test_no_solution(context: Make, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"task 'hello': .*solve\.sh does not exist"):
        await oracle.connect(context(None))
    whole = context("#!/bin/sh\n", step="one")
    task = Task("hello", tmp_path, "test", "do it", Dialect())
    bare = SessionContext(whole.sandbox, task, Step("one", "do it"), whole.agent, whole.emit, whole.log_dir)
    with pytest.raises(TaskError, match="step 'one' of task 'hello' has no reference solution"):
        await oracle.connect(bare)


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("way", ["cancel", "task", "close"])
async def test_a_script_that_hangs_is_ended_with_its_tree(box: Sandbox, context: Make, way: str, user: str) -> None:
    need(box, user)
    before = await box.processes()
    session = await oracle.connect(context("#!/bin/sh\nsleep 600 & sleep 600\n", user=user))
    turn = asyncio.create_task(session.prompt("go"))
    async with asyncio.timeout(20):
        while "sleep" not in await sh(box, "cat /proc/[0-9]*/comm 2>/dev/null || true"):
            await asyncio.sleep(0.05)
        if way == "task":
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
        else:
            await (session.cancel() if way == "cancel" else session.close())
            assert (await turn).stop_reason == "cancelled"
    assert sorted(await box.processes()) == sorted(before)
    assert await sh(box, "stat -c '%a %u' /solution") == "700 0"


async def test_the_time_of_the_solution_itself(context: Make) -> None:
    session = await oracle.connect(context("#!/bin/sh\nsleep 600\n", timeout=0.5))
    with pytest.raises(AgentTimeout, match=r"within 0\.5 s"):
        await session.prompt("go")


async def test_a_server_lives_on(box: Sandbox, context: Make) -> None:
    script = "#!/bin/sh\n(while :; do echo tick; date +%s%N > /app/clock; sleep 0.05; done) &\nsleep 0.2\n"
    session = await oracle.connect(context(script))
    async with asyncio.timeout(20):
        await session.prompt("go")
    await session.close()
    first = await sh(box, "cat /app/clock")
    await asyncio.sleep(0.4)
    assert await sh(box, "cat /app/clock") != first


async def test_each_step_has_its_own_solution(box: Sandbox, context: Make) -> None:
    for name in ("one", "two"):
        session = await oracle.connect(context(f"#!/bin/sh\necho {name} >> /app/done\n", step=name))
        assert (await session.prompt("go")).data["exit_code"] == 0
    assert await sh(box, "cat /app/done") == "one\ntwo"
    assert await sh(box, "ls /solution") == "notes-two.txt\nsolve.sh"


async def test_much_output_is_kept_in_the_box_and_cut_in_the_event(
    box: Sandbox, context: Make, events: list[SessionEvent]
) -> None:
    session = await oracle.connect(context("#!/bin/sh\nyes | head -c 3000000\necho end\n"))
    await session.prompt("go")
    assert int(await sh(box, "stat -c %s /logs/agent/oracle.txt")) == 3_000_004
    output = events[-1].data["rawOutput"]["output"]
    assert len(output) == 65536 and output.endswith("end\n")


async def test_a_script_that_kills_everything(context: Make) -> None:
    session = await oracle.connect(context("#!/bin/sh\nkill -9 -1\n"))
    async with asyncio.timeout(20):
        assert (await session.prompt("go")).data["exit_code"] != 0


async def test_nop_does_nothing(box: Sandbox, context: Make, events: list[SessionEvent]) -> None:
    session = await nop.connect(context("#!/bin/sh\ntouch /app/x\n"))
    await session.cancel()
    assert (await session.prompt("go")).stop_reason == "end_turn"
    await session.close()
    assert await sh(box, "ls -A /app /solution") == "/app:\n\n/solution:" and not events


def test_what_the_specs_say() -> None:
    assert oracle.benchflow_agent().purpose == "reference" and nop.benchflow_agent().purpose == "null"
