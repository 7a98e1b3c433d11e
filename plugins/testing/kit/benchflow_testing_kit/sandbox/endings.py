"""How commands end: time-outs, cancellation, and what may live on."""

from __future__ import annotations

import asyncio
import time

import pytest

from benchflow_core.contracts import Sandbox
from benchflow_testing_kit.host import within
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import HEARTBEAT, Bench, beats, ok, sh

__all__ = ["EndingTests"]

FAMILY = f"""
beat() {{ {HEARTBEAT}; }}
beat "$1/child" &
( beat "$1/orphan" & ) &
nohup sh -c '{HEARTBEAT}' sh "$1/nohup" >/dev/null 2>&1 &
( trap '' TERM HUP INT; beat "$1/stubborn" ) &
if command -v setsid >/dev/null; then
  setsid sh -c '{HEARTBEAT}' sh "$1/session" >/dev/null 2>&1 &
  ( setsid sh -c '{HEARTBEAT}' sh "$1/daemon" >/dev/null 2>&1 </dev/null & ) &
fi
echo started
wait; sleep 600
"""
"""A process with every kind of descendant that a careless kill misses."""

MEMBERS = ("child", "orphan", "nohup", "stubborn", "session", "daemon")


class EndingTests(SandboxSuite):
    """Whatever ends a command ends all of it, except where it ended by itself."""

    async def test_timeout_kills_the_whole_tree(self, box: Sandbox, scratch: str) -> None:
        began = time.monotonic()
        done = await sh(box, FAMILY, scratch, timeout=1.5)
        assert done.timed_out and done.exit_code != 0
        assert time.monotonic() - began < 30
        assert done.stdout == b"started\n", "what was printed before the end is kept"
        await ok(box, '[ -s "$1/child" ] && [ -s "$1/orphan" ]', scratch)
        assert await beats(box, [f"{scratch}/{name}" for name in MEMBERS]) == []

    async def test_no_timeout_is_reported_where_none_was(self, box: Sandbox) -> None:
        done = await sh(box, "sleep 1; exit 3", timeout=30)
        assert (done.exit_code, done.timed_out) == (3, False)

    async def test_cancelled_command_leaves_no_process(self, box: Sandbox, scratch: str) -> None:
        task = asyncio.create_task(sh(box, FAMILY, scratch))
        await _until_exists(box, f"{scratch}/child")
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await beats(box, [f"{scratch}/{name}" for name in MEMBERS]) == []
        assert await ok(box, "echo alive") == "alive\n"

    @pytest.mark.parametrize("delay", [0.0, 0.01, 0.05])
    async def test_command_cancelled_while_it_starts_leaves_no_process(
        self, box: Sandbox, scratch: str, delay: float
    ) -> None:
        task = asyncio.create_task(sh(box, HEARTBEAT, f"{scratch}/beat"))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.3)
        assert await beats(box, [f"{scratch}/beat"]) == []

    async def test_background_process_of_a_finished_command_lives_on(self, box: Sandbox, scratch: str) -> None:
        start = f'sh -c \'{HEARTBEAT}\' sh "$1/beat" >/dev/null 2>&1 </dev/null & echo $! >"$1/pid"'
        await ok(box, start, scratch, timeout=30)
        assert await beats(box, [f"{scratch}/beat"]) == [f"{scratch}/beat"]
        await ok(box, 'kill "$(cat "$1/pid")"', scratch)
        assert await beats(box, [f"{scratch}/beat"]) == []

    async def test_kill_all_ends_everything_but_the_box(self, bench: Bench) -> None:
        box = await bench.start()
        folder = await bench.scratch(box)
        assert await box.processes() == []
        process = await box.spawn(["sh", "-c", FAMILY, "sh", folder])
        await _until_exists(box, f"{folder}/child")
        running = asyncio.create_task(sh(box, "trap '' TERM; sleep 300"))
        await sh(box, f"nohup sh -c '{HEARTBEAT}' sh \"$1/left\" >/dev/null 2>&1 </dev/null &", folder)
        await asyncio.sleep(0.3)
        assert len(await box.processes()) >= 5
        async with within(30):
            await box.kill_all()
            assert await box.processes() == []
            assert (await running).exit_code != 0
            assert await process.wait() != 0
            await box.kill_all()
        assert await beats(box, [f"{folder}/{name}" for name in (*MEMBERS, "left")]) == []

    async def test_background_process_does_not_hold_up_its_command(self, box: Sandbox, scratch: str) -> None:
        """The child keeps the output pipes open: the command has ended all the same."""
        began = time.monotonic()
        done = await sh(box, 'sleep 9 & echo $! >"$1/pid"; echo done', scratch, timeout=8)
        took = time.monotonic() - began
        await sh(box, 'kill "$(cat "$1/pid")"', scratch)
        assert (done.exit_code, done.stdout, done.timed_out) == (0, b"done\n", False)
        assert took < 6


async def _until_exists(box: Sandbox, path: str) -> None:
    await ok(box, 'until [ -s "$1" ]; do sleep 0.1 2>/dev/null || sleep 1; done', path, timeout=20)
