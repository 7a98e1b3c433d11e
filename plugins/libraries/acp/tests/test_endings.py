"""How a turn can end badly: crashes, silence, cancellation. Typed, quick, and nothing is left running."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import Process
from benchflow_core.errors import AgentCrashed, AgentProtocolError, AgentTimeout, TransportError


@pytest.mark.parametrize(("crash", "code", "said"), [(3, 3, "code 3"), (-9, -9, "signal 9"), (0, 0, "code 0")])
async def test_a_crash_in_a_turn(bench: Any, crash: int, code: int, said: str) -> None:
    session = await bench.scripted(f"[{{say: hi}}, {{stderr: 'Traceback: boom'}}, {{crash: {crash}}}]")
    began = time.monotonic()
    with pytest.raises(AgentCrashed, match=f"{said}.*boom") as crashed:
        await session.prompt("go")
    assert time.monotonic() - began < 1.0
    assert crashed.value.details == {"exit_code": code, "stderr_tail": "Traceback: boom"}
    assert bench.text() == "hi"
    with pytest.raises(AgentCrashed):
        await session.prompt("again")


async def test_a_crash_at_the_start(bench: Any) -> None:
    with pytest.raises(AgentCrashed, match="no module named agent"):
        await bench.raw("pass", before="sys.exit('no module named agent')")


async def test_the_last_words_are_kept(bench: Any) -> None:
    session = await bench.raw(
        "sys.stderr.write('blah' * 100_000 + '\\nlast words\\n'); sys.stderr.flush(); os._exit(4)"
    )
    with pytest.raises(AgentCrashed, match="last words"):
        await session.prompt("go")


async def test_a_program_that_is_none(bench: Any) -> None:
    with pytest.raises(AgentCrashed) as crashed:
        await bench.open("sh", "-c", "echo usage: agent; exit 2")
    assert crashed.value.details["exit_code"] == 2
    assert crashed.value.details["stderr_tail"] == "[stdout] usage: agent"


@pytest.mark.parametrize(("code", "why"), [(127, "was not found"), (126, "cannot be executed")])
async def test_a_program_that_cannot_be_started_says_why(bench: Any, code: int, why: str) -> None:
    with pytest.raises(AgentCrashed, match=f"{why} in the box: agent: sorry"):
        await bench.open("sh", "-c", f"echo agent: sorry >&2; exit {code}")
    with pytest.raises(AgentCrashed):
        await bench.raw("pass", before=f"update(); receive(); os._exit({code})")


async def test_a_crash_is_seen_although_a_child_holds_the_pipes(bench: Any, within: Any) -> None:
    session = await bench.raw("import subprocess; subprocess.Popen(['sleep', '60']); os._exit(5)")
    with pytest.raises(AgentCrashed) as crashed:
        await within(5, session.prompt("go"))
    assert crashed.value.details["exit_code"] == 5


async def test_an_answer_right_before_the_end_counts(bench: Any) -> None:
    session = await bench.raw('answer({"stopReason": "end_turn"}); os._exit(1)')
    assert (await session.prompt("go")).stop_reason == "end_turn"


async def test_an_answer_behind_a_flood_counts_even_with_a_slow_consumer(bench: Any) -> None:
    """The agent is long dead when its last words are read; a child of it keeps the pipe open."""
    count = 0

    def slow(event: Any) -> None:
        nonlocal count
        count += event.kind == "tick"
        time.sleep(0.006)

    session = await bench.raw(
        """
        import subprocess
        for _ in range(400): update("tick", text="x" * 1000)
        answer({"stopReason": "end_turn"})
        subprocess.Popen(["sleep", "60"])
        os._exit(0)
        """,
        emit=slow,
    )
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert count == 400


async def test_stdout_closed_while_it_lives_on(bench: Any, within: Any) -> None:
    session = await bench.scripted("[close_stdout]")
    with pytest.raises(AgentProtocolError, match="closed its standard output but still runs"):
        await within(5, session.prompt("go"))
    await session.close()
    assert not bench.processes[-1].alive()


async def test_silence_is_given_up(bench: Any) -> None:
    session = await bench.scripted("[{say: hi}, hang]", idle_timeout=0.4)
    with pytest.raises(AgentTimeout, match="silent") as idle:
        await session.prompt("go")
    assert idle.value.details["reason"] == "idle" and 0.4 <= idle.value.details["idle_seconds"] < 2
    assert "session/cancel" in [m.get("method") for m in bench.processes[-1].messages()]
    assert bench.of("turn_cancelled")[0]["response"] == {"stopReason": "cancelled"}


async def test_silence_of_a_running_tool_is_not(bench: Any) -> None:
    session = await bench.scripted("[{run: 'sleep 1.2'}, {say: done}]", idle_timeout=0.4)
    assert (await session.prompt("go")).stop_reason == "end_turn"


async def test_silence_after_a_tool_is(bench: Any) -> None:
    session = await bench.scripted("[{run: 'sleep 0.6'}, hang]", idle_timeout=0.4)
    with pytest.raises(AgentTimeout):
        await session.prompt("go")


async def test_noise_is_no_sign_of_life(bench: Any, within: Any) -> None:
    session = await bench.raw("while True: raw('still here\\n'); time.sleep(0.05)", idle_timeout=0.5)
    with pytest.raises(AgentTimeout):
        await within(10, session.prompt("go"))


async def test_cancel(bench: Any, within: Any) -> None:
    session = await bench.scripted("{turns: [[{run: 'sleep 60'}], [{say: again}]]}")
    turn = asyncio.create_task(session.prompt("go"))
    await asyncio.sleep(0.3)
    await within(5, session.cancel())
    assert (await turn).stop_reason == "cancelled"
    assert bench.processes[-1].alive()
    assert (await session.prompt("and now?")).stop_reason == "end_turn" and bench.text() == "again"
    await session.cancel()  # nothing runs: nothing happens


async def test_cancel_of_an_agent_that_does_not_listen(bench: Any, within: Any) -> None:
    session = await bench.scripted("[ignore_cancel, hang]", cancel_grace=0.3)
    turn = asyncio.create_task(session.prompt("go"))
    await asyncio.sleep(0.3)
    await within(5, session.cancel())
    outcome = await within(1, turn)
    assert outcome.stop_reason == "cancelled" and outcome.data == {"answered": False}
    assert not bench.processes[-1].alive()


async def test_a_deadline_of_the_caller(bench: Any) -> None:
    session = await bench.scripted("[{run: 'touch started; sleep 60'}]")
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.8):
            await session.prompt("go")
    assert time.monotonic() - began < 3
    assert (bench.root / "started").exists()
    (ended,) = bench.of("turn_cancelled")
    assert ended["answered"] and ended["response"]["stopReason"] == "cancelled" and len(ended["open_tool_calls"]) == 1
    assert bench.processes[-1].alive()


async def test_a_deadline_with_an_agent_that_does_not_listen(bench: Any, within: Any) -> None:
    session = await bench.scripted("[ignore_cancel, {run: 'sleep 60'}]", cancel_grace=0.3)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.4):
            await session.prompt("go")
    assert time.monotonic() - began < 3
    assert not bench.processes[-1].alive()
    assert not bench.of("turn_cancelled")[0]["answered"]


async def test_an_impatient_second_cancellation_kills_at_once(bench: Any, within: Any) -> None:
    session = await bench.scripted("[ignore_cancel, hang]", cancel_grace=30)
    turn = asyncio.create_task(session.prompt("go"))
    await asyncio.sleep(0.3)
    turn.cancel()
    await asyncio.sleep(0.1)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(5, turn)
    assert not bench.processes[-1].alive()


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("{run: 'touch ran', permission: true}", {"outcome": {"outcome": "cancelled"}}),
        ("{elicit: {message: 'Well?'}}", {"action": "cancel"}),
    ],
)
async def test_cancel_answers_open_questions(bench: Any, within: Any, step: str, answer: Any) -> None:
    asked = asyncio.Event()

    async def never(request: Any) -> Any:
        asked.set()
        await asyncio.sleep(60)

    session = await bench.scripted(f"[{step}]", on_permission=never, elicit=never)
    turn = asyncio.create_task(session.prompt("go"))
    await asked.wait()
    assert bench.kinds()[-1] == "question_open", "whoever watches sees it while nobody has answered"
    await within(5, session.cancel())
    assert (await within(1, turn)).stop_reason == "cancelled"
    replies = [m for m in bench.processes[-1].messages() if "result" in m]
    assert replies == [{"jsonrpc": "2.0", "id": 1, "result": answer}]
    assert not (bench.root / "ran").exists()


async def test_an_error_in_answer_to_a_cancel_is_a_cancelled_turn(bench: Any) -> None:
    body = """
        while receive().get("method") != "session/cancel": pass
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32800, "message": "aborted"}})
    """
    session = await bench.raw(body)
    turn = asyncio.create_task(session.prompt("go"))
    await asyncio.sleep(0.2)
    await session.cancel()
    assert (await turn).stop_reason == "cancelled"


async def test_close_ends_the_whole_tree_in_the_middle_of_a_turn(bench: Any, within: Any) -> None:
    session = await bench.raw(
        "import subprocess; p = subprocess.Popen(['sleep', '60']); update('pid', pid=p.pid); time.sleep(60)"
    )
    turn = asyncio.create_task(session.prompt("go"))
    while not bench.of("pid"):
        await asyncio.sleep(0.02)
    await within(5, session.close())
    with pytest.raises(Exception, match="closed"):
        await turn
    child = bench.of("pid")[0]["pid"]
    assert not bench.processes[-1].alive()
    stat = Path(f"/proc/{child}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


CLOCK = "while :; do date +%s%N > clock; sleep 0.05; done"


async def ticks(bench: Any) -> bool:
    before = (bench.root / "clock").read_text()
    await asyncio.sleep(0.4)
    return bool((bench.root / "clock").read_text() != before)


@pytest.mark.parametrize("lives_on", [True, False])
async def test_what_the_agent_started_lives_on_if_it_is_to(bench: Any, within: Any, lives_on: bool) -> None:
    detached = f"[{{background: '{CLOCK}'}}, {{wait: 0.2}}, {{say: '{{{{last}}}}'}}]"
    session = await bench.scripted(detached)
    await session.prompt("go")
    server = int(bench.of("tool_call_update")[-1]["rawOutput"]["pid"])
    try:
        if lives_on:
            assert await within(5, session.leave())
        else:
            bench.processes[-1].also = [server]
            await session.close()
        assert not bench.processes[-1].alive()
        assert await ticks(bench) is lives_on
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server, 9)


async def test_an_agent_that_does_not_end_by_itself_is_killed(bench: Any, within: Any) -> None:
    session = await bench.raw("answer({'stopReason': 'end_turn'}); time.sleep(60)")
    await session.prompt("go")
    assert not await within(5, session.leave(grace=0.3))
    assert not bench.processes[-1].alive()


async def test_close_never_raises(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await bench.scripted("- say: hi")
    process = bench.processes[-1]
    kill = process.kill

    async def fails() -> None:
        raise TransportError("the engine is gone.")

    monkeypatch.setattr(process, "kill", fails)
    await session.close()
    await kill()


async def test_nothing_is_left_on_the_loop(bench: Any) -> None:
    before = asyncio.all_tasks()
    session = await bench.scripted("- say: hi")
    await session.prompt("go")
    await session.close()
    assert asyncio.all_tasks() == before


async def test_a_transport_that_breaks_is_infrastructure(bench: Any) -> None:
    session = await bench.scripted("[{say: hi}, hang]")
    process: Process = bench.processes[-1]
    turn = asyncio.create_task(session.prompt("go"))
    while not bench.of("agent_message_chunk"):
        await asyncio.sleep(0.02)
    process._process.stdout.set_exception(TransportError("the stream broke."))  # type: ignore[attr-defined]
    with pytest.raises(TransportError) as broken:
        await turn
    assert broken.value.retryable
