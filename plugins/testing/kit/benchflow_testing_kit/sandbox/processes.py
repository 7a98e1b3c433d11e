"""`spawn`: duplex processes, what agents talk through."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from benchflow_core.contracts import Process, Sandbox
from benchflow_core.errors import BenchflowError, TransportError
from benchflow_testing_kit.host import peak_memory, within
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import HEARTBEAT, beats, ok, sh
from benchflow_testing_kit.sandbox.endings import FAMILY, MEMBERS
from benchflow_testing_kit.suite import same, soak

__all__ = ["ProcessTests"]

MEGA = 1 << 20


class ProcessTests(SandboxSuite):
    """Bytes both ways at once, with back-pressure, and an honest end."""

    async def test_process_talks_both_ways(self, box: Sandbox) -> None:
        process = await box.spawn(["cat"])
        for text in (b"hello\n", bytes(range(256)), "ünïcødé\n".encode()):
            await process.write(text)
            assert await _read(process, len(text)) == text
        await process.close_stdin()
        assert await process.read() == b""
        assert await process.wait() == 0

    async def test_process_gets_arguments_environment_and_directory(self, box: Sandbox, scratch: str) -> None:
        script = 'printf "%s|%s|" "$1" "$KIT_VALUE"; pwd'
        process = await box.spawn(["sh", "-c", script, "sh", "a 'b' \n$c"], env={"KIT_VALUE": "ü\n"}, cwd=scratch)
        assert await _rest(process) == f"a 'b' \n$c|ü\n|{scratch}\n".encode()

    @pytest.mark.parametrize(
        ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", -9), ("kill -TERM $$", -15)]
    )
    async def test_wait_gives_the_exit_code(self, box: Sandbox, script: str, code: int) -> None:
        process = await box.spawn(["sh", "-c", script])
        assert [await process.wait(), await process.wait()] == [code, code]

    async def test_missing_program_is_said(self, box: Sandbox) -> None:
        """Either the spawn raises, or the process ends with 127 as a shell would."""
        try:
            process = await box.spawn(["no-such-program-of-the-kit"])
        except BenchflowError:
            return
        assert await process.wait() == 127
        assert (await _rest_of_stderr(process)).strip()

    async def test_output_can_be_read_after_the_end(self, box: Sandbox) -> None:
        process = await box.spawn(["sh", "-c", "echo out; echo err >&2"])
        assert await process.wait() == 0
        assert (await _rest(process), await _rest_of_stderr(process)) == (b"out\n", b"err\n")

    async def test_streams_are_apart_and_a_flood_on_one_does_not_block_the_other(self, box: Sandbox) -> None:
        script = """
            block=$(printf '%01024d' 7); i=0
            while [ $i -lt 4096 ]; do echo "$block" >&2; [ $((i % 64)) = 0 ] && echo "line $i"; i=$((i+1)); done
            echo end"""
        process = await box.spawn(["sh", "-c", script])
        out, err = await asyncio.gather(_rest(process), _rest_of_stderr(process))
        assert out.splitlines() == [b"line %d" % i for i in range(0, 4096, 64)] + [b"end"]
        assert (len(err), set(err)) == (1025 * 4096, set(b"07\n"))

    async def test_ten_thousand_json_lines_each_way(self, box: Sandbox) -> None:
        lines = [json.dumps({"id": n, "text": "ü" * (n % 97)}) for n in range(10_000)]
        process = await box.spawn(["cat"])

        async def send() -> None:
            for line in lines:
                await process.write(line.encode() + b"\n")
            await process.close_stdin()

        async with within(90):
            _, received = await asyncio.gather(send(), _rest(process))
        same(received.decode().splitlines(), lines)

    async def test_unread_input_holds_the_sender_back(self, box: Sandbox) -> None:
        process = await box.spawn(["sleep", "60"])
        sent = 0

        async def send() -> None:
            nonlocal sent
            with contextlib.suppress(TransportError):
                while sent < 256 * MEGA:
                    await process.write(b"x" * MEGA)
                    sent += MEGA

        with peak_memory() as peak:
            task = asyncio.create_task(send())
            await asyncio.sleep(2)
            blocked = not task.done()
        await process.kill()
        await asyncio.wait_for(task, 20)
        assert blocked and sent < 64 * MEGA, f"{sent >> 20} MB were taken from the sender although nobody read them"
        assert peak.bytes < 64 * MEGA

    async def test_unread_output_holds_the_process_back(self, box: Sandbox, scratch: str) -> None:
        script = 'dd if=/dev/zero bs=65536 count=3200 2>/dev/null; touch "$1/finished"'
        with peak_memory() as peak:
            process = await box.spawn(["sh", "-c", script, "sh", scratch])
            await asyncio.sleep(2)
            finished = (await sh(box, '[ -e "$1/finished" ]', scratch)).exit_code == 0
        await process.kill()
        assert not finished, "200 MB were taken from the process although nobody read them"
        assert peak.bytes < 64 * MEGA

    async def test_reading_can_be_given_up_without_loss(self, box: Sandbox) -> None:
        process = await box.spawn(["cat"])
        for n in range(20):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(process.read(), 0.02)
            await process.write(b"%d\n" % n)
            assert await _read(process, len(b"%d\n" % n)) == b"%d\n" % n
        await process.kill()

    async def test_writing_to_a_dead_process_raises(self, box: Sandbox) -> None:
        killed = await box.spawn(["cat"])
        await killed.kill()
        ended = await box.spawn(["sh", "-c", "exec <&-; exit 0"])
        await ended.wait()
        for process in (killed, ended):
            with pytest.raises(TransportError):
                for _ in range(100):
                    await process.write(b"x" * 65536)
                    await asyncio.sleep(0.02)

    async def test_kill_ends_the_whole_tree(self, box: Sandbox, scratch: str) -> None:
        process = await box.spawn(["sh", "-c", FAMILY, "sh", scratch])
        assert await process.read() == b"started\n"
        await asyncio.sleep(0.5)
        async with within(30):
            await process.kill()
            assert await beats(box, [f"{scratch}/{name}" for name in MEMBERS]) == []
            await process.kill()
            assert await process.wait() != 0
            assert await _rest(process) == b""

    async def test_cancelled_spawn_leaves_no_process(self, box: Sandbox, scratch: str) -> None:
        for n, delay in enumerate((0.0, 0.005, 0.02)):
            task = asyncio.create_task(box.spawn(["sh", "-c", HEARTBEAT, "sh", f"{scratch}/{n}"]))
            await asyncio.sleep(delay)
            if task.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                await (await task).kill()
        await asyncio.sleep(0.3)
        assert await beats(box, [f"{scratch}/{n}" for n in range(3)]) == []

    async def test_many_processes_at_once(self, box: Sandbox) -> None:
        processes = await asyncio.gather(*(box.spawn(["cat"]) for _ in range(16)))
        for round_ in range(5):
            for n, process in enumerate(processes):
                await process.write(b"%d.%d\n" % (n, round_))
            for n, process in enumerate(processes):
                expected = b"%d.%d\n" % (n, round_)
                assert await _read(process, len(expected)) == expected
        for process in processes:
            await process.close_stdin()
        assert await asyncio.gather(*(p.wait() for p in processes)) == [0] * 16

    @soak
    async def test_hundred_megabytes_through_one_pipe(self, box: Sandbox) -> None:
        process = await box.spawn(["cat"])
        block = bytes(range(256)) * 4096

        async def send() -> None:
            for _ in range(100):
                await process.write(block)
            await process.close_stdin()

        async def receive() -> int:
            total = 0
            while data := await process.read():
                start = total % 256
                assert data == (block[start:] + block)[: len(data)]
                total += len(data)
            return total

        with peak_memory() as peak:
            _, total = await asyncio.gather(send(), receive())
        assert total == 100 * MEGA
        assert peak.bytes < 64 * MEGA
        assert await process.wait() == 0
        assert await ok(box, "echo alive") == "alive\n"


async def _read(process: Process, size: int) -> bytes:
    """Exactly so many bytes, or what there was before the end."""
    data = b""
    async with within(30):
        while len(data) < size and (more := await process.read(size - len(data))):
            data += more
    return data


async def _rest(process: Process) -> bytes:
    parts = []
    while part := await process.read():
        parts.append(part)
    return b"".join(parts)


async def _rest_of_stderr(process: Process) -> bytes:
    parts = []
    while part := await process.read_stderr():
        parts.append(part)
    return b"".join(parts)
