"""Process trees that try to get away."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from benchflow_testing_kit.host import eventually

from benchflow_core.contracts import Resources

CLEAN_DAEMON = """
import os, time
for _ in range(2):
    if os.fork(): os._exit(0)
    os.setsid()
os.execve("/bin/sleep", ["a-quiet-name", "300"], {})
"""
"""Forks twice, leaves session and group, and starts anew under another name without any variable."""


async def test_a_clean_double_fork_does_not_get_away(start: Any) -> None:
    box = await start()
    process = await box.spawn(["sh", "-c", 'python3 -c "$0"; echo forked; sleep 300', CLEAN_DAEMON])
    assert await process.read() == b"forked\n"

    async def all_there() -> bool:
        return len(await box.processes()) == 3

    assert await eventually(all_there)
    await process.kill()
    assert await box.processes() == []


async def test_what_a_command_left_ends_with_its_process_only_if_asked(start: Any) -> None:
    box = await start()
    process = await box.spawn(["python3", "-c", CLEAN_DAEMON])
    assert await process.wait() == 0
    other = await box.spawn(["sleep", "300"])

    async def two() -> bool:
        return len(await box.processes()) == 2

    assert await eventually(two), "the daemon lives on, and what forked it ends"
    await process.kill()
    assert await box.processes() == [other.pid]


async def test_a_killed_process_leaves_others_alone(start: Any) -> None:
    """Also when their numbers in the kernel come from the same pool."""
    box = await start()
    others = []
    for _ in range(5):
        ended = await box.spawn(["true"])
        await ended.wait()
        others.append(await box.spawn(["sh", "-c", "sleep 300 & echo on; wait"]))
        await others[-1].read()
        await ended.kill()
    assert len(await box.processes()) == 10, "five shells, and a child of each"


async def test_a_fork_bomb_can_be_ended(provider: Any, start: Any) -> None:
    if "pids" not in provider.engine.hierarchies.parents:
        pytest.skip("the number of processes is not limited here")
    box = await start(resources=Resources(pids=200))
    began = time.monotonic()
    done = await box.exec(
        ["python3", "-c", "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"], timeout=1.5
    )
    assert done.timed_out and time.monotonic() - began < 30
    assert (await box.exec(["echo", "on"])).stdout == b"on\n"
    assert await box.processes() == []


async def test_a_daemon_keeps_its_output_after_its_command(start: Any) -> None:
    """Nobody reads any more; it must not be killed for writing."""
    box = await start()
    script = "(while sleep 0.05; do echo tick; done) & echo started"
    assert (await box.exec(["sh", "-c", script])).stdout.startswith(b"started\n")
    await asyncio.sleep(0.5)
    assert len(await box.processes()) >= 1


async def test_stopped_processes_stay_stopped_over_a_snapshot(start: Any) -> None:
    box = await start()
    process = await box.spawn(["sh", "-c", "sleep 300 & kill -STOP $!; echo $!; wait"])
    pid = int(await process.read())

    async def stopped() -> bool:
        return bool((await box.exec(["sh", "-c", f"cut -d' ' -f3 /proc/{pid}/stat"])).stdout == b"T\n")

    assert await eventually(stopped)
    await box.snapshot("x")
    assert await stopped()
    await process.kill()


def _groups(cmdline: bytes) -> list[str]:
    """The control groups of a process, as the host sees it."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cmdline").read_bytes() == cmdline:
                return [line.rpartition("/")[2] for line in (process / "cgroup").read_text().splitlines()]
    return []


async def test_memory_limit_ends_programs_not_the_box(provider: Any, start: Any) -> None:
    if "memory" not in provider.engine.hierarchies.parents:
        pytest.skip("memory is not limited here")
    box = await start(resources=Resources(memory_mb=96))
    for _ in range(3):
        done = await box.exec(["python3", "-c", "x = bytearray(500_000_000)"], timeout=60)
        assert done.oom_killed and done.exit_code == -9
    assert not (await box.exec(["sh", "-c", "kill -9 $$"])).oom_killed
    await box.spawn(["sleep", "299.0417"])  # by which the host finds the box's own groups
    assert await eventually(lambda: bool(_groups(b"sleep\x00299.0417\x00"))), "it takes a moment to become its program"
    groups = _groups(b"sleep\x00299.0417\x00")
    own = next(group for group in groups if group.startswith("benchflow-"))
    folders = list(Path("/sys/fs/cgroup").glob(f"**/{own}"))
    assert folders
    await box.stop()
    assert await eventually(lambda: not [folder for folder in folders if folder.exists()])
