"""Commands and processes that do not end as they should."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import replace

from benchflow_core.contracts import ExecResult
from benchflow_core.errors import TransportError
from kit_defects.wrap import Box, Process, defect


@defect("test_timeout_kills_the_whole_tree")
class KillsOnlyTheFirstProcess(Box):
    async def exec(self, argv, timeout=None, **options):
        if timeout is None:
            return await super().exec(argv, **options)
        process = await self.inner.spawn(argv)
        await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=timeout)
        os.kill(process.pid, signal.SIGKILL)
        return ExecResult(await process.wait(), b"started\n", b"", timed_out=True)


@defect("test_no_timeout_is_reported_where_none_was")
class AlwaysTimedOut(Box):
    async def exec(self, argv, **options):
        return replace(await super().exec(argv, **options), timed_out="timeout" in options)


@defect(
    "test_cancelled_command_leaves_no_process test_command_cancelled_while_it_starts_leaves_no_process "
    "test_cancelled_spawn_leaves_no_process"
)
class IgnoresCancellation(Box):
    async def exec(self, argv, **options):
        return await asyncio.shield(super().exec(argv, **options))

    async def spawn(self, argv, **options):
        async def later():
            await asyncio.sleep(0.05)
            return await self.inner.spawn(argv, **options)

        return Process(await asyncio.shield(later()))


@defect("test_background_process_of_a_finished_command_lives_on")
class TidiesUpAfterEachCommand(Box):
    async def exec(self, argv, **options):
        done = await super().exec(argv, **options)
        await self.inner.kill_all()
        return done


@defect("test_background_process_does_not_hold_up_its_command")
class ReadsToTheEndOfThePipe(Box):
    async def exec(self, argv, timeout=None, **options):
        process, out = await self.inner.spawn(argv), b""
        while data := await process.read():
            out += data
        return ExecResult(await process.wait(), out, b"")


@defect("test_kill_all_ends_everything_but_the_box")
class AsksPolitely(Box):
    async def kill_all(self, **options):
        for pid in await self.inner.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


@defect("test_process_talks_both_ways")
class StripsLines(Process):
    async def read(self, limit=65536):
        return (await super().read(limit)).strip()


@defect("test_process_gets_arguments_environment_and_directory")
class SpawnsWithoutEnvironment(Box):
    async def spawn(self, argv, env=None, **options):
        return await super().spawn(argv, **options)


@defect("test_wait_gives_the_exit_code")
class AlwaysEndsWell(Process):
    async def wait(self):
        await super().wait()
        return 0


@defect("test_missing_program_is_said")
class PretendsToSpawn(Box):
    async def spawn(self, argv, **options):
        return await super().spawn(["true"], **options)


@defect("test_output_can_be_read_after_the_end")
class ForgetsOutputAtTheEnd(Process):
    ended = False

    async def wait(self):
        self.ended = True
        return await super().wait()

    async def read(self, limit=65536):
        return b"" if self.ended else await super().read(limit)


@defect("test_streams_are_apart_and_a_flood_on_one_does_not_block_the_other")
class SpawnsWithOneStream(Box):
    async def spawn(self, argv, **options):
        return await super().spawn(["sh", "-c", 'exec "$@" 2>&1', "sh", *argv], **options)


@defect("test_ten_thousand_json_lines_each_way test_hundred_megabytes_through_one_pipe")
class LosesWrites(Process):
    count = 0

    async def write(self, data):
        self.count += 1
        if self.count % 50:
            await super().write(data)


@defect("test_unread_input_holds_the_sender_back")
class QueuesWithoutEnd(Process):
    queue = b""

    async def write(self, data):
        self.queue += data[:16]
        await asyncio.sleep(0)


@defect("test_unread_output_holds_the_process_back")
class ReadsAhead(Process):
    def __init__(self, inner):
        super().__init__(inner)
        self.ahead = asyncio.create_task(self.drain())

    async def drain(self):
        while await self.inner.read():
            pass


@defect("test_reading_can_be_given_up_without_loss")
class LosesWhatNobodyWaitedFor(Process):
    given_up = False

    async def read(self, limit=65536):
        try:
            data = await super().read(limit)
        except asyncio.CancelledError:
            self.given_up = True
            raise
        if self.given_up:
            self.given_up = False
            return await super().read(limit)
        return data


@defect("test_writing_to_a_dead_process_raises")
class WritesIntoTheVoid(Process):
    async def write(self, data):
        with contextlib.suppress(TransportError):
            await super().write(data)


@defect("test_kill_ends_the_whole_tree")
class KillsOnlyItself(Process):
    async def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.inner.pid, signal.SIGKILL)


@defect("test_many_processes_at_once")
class RunsEightAtMost(Box):
    count = 0

    async def spawn(self, argv, **options):
        self.count += 1
        if self.count > 8:
            raise TransportError("too many")
        return await super().spawn(argv, **options)
