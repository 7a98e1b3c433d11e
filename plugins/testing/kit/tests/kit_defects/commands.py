"""Broken `exec`."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

from benchflow_core.contracts import ExecResult
from benchflow_core.errors import CapabilityMissing
from kit_defects.wrap import Box, Provider, defect


@defect("test_exit_code_is_passed_on")
class ForgetsExitCodes(Box):
    async def exec(self, argv, **options):
        return replace(await super().exec(argv, **options), exit_code=0)


@defect("test_death_by_signal_is_negative")
class CountsSignalsFrom128(Box):
    async def exec(self, argv, **options):
        done = await super().exec(argv, **options)
        return replace(done, exit_code=128 - done.exit_code if done.exit_code < 0 else done.exit_code)


@defect("test_missing_program_gives_127 test_unexecutable_program_gives_126")
class CannotTellStartFailures(Box):
    async def exec(self, argv, **options):
        done = await super().exec(argv, **options)
        return replace(done, exit_code=1) if done.exit_code in (126, 127) else done


@defect("test_arguments_arrive_unchanged")
class JoinsArguments(Box):
    async def exec(self, argv, **options):
        return await super().exec(["sh", "-c", " ".join(f'"{a}"' for a in argv)], **options)


@defect("test_environment_arrives_unchanged")
class StripsEnvironment(Box):
    async def exec(self, argv, env=None, **options):
        return await super().exec(argv, env={k: v.strip() for k, v in (env or {}).items()}, **options)


@defect("test_environment_of_one_command_does_not_reach_the_next")
class RemembersEnvironment(Box):
    def __init__(self, inner):
        super().__init__(inner)
        self.seen = {}

    async def exec(self, argv, env=None, **options):
        self.seen |= env or {}
        return await super().exec(argv, env=self.seen, **options)


@defect("test_environment_of_the_box_reaches_every_command")
class ForgetsTheBoxEnvironment(Provider):
    async def start(self, image, request):
        return await super().start(image, replace(request, env={}))


@defect("test_host_environment_stays_outside")
class LeaksTheHostEnvironment(Box):
    async def exec(self, argv, env=None, **options):
        return await super().exec(argv, env={**os.environ, **(env or {})}, **options)


@defect("test_working_directory")
class IgnoresTheWorkingDirectory(Box):
    async def exec(self, argv, cwd=None, **options):
        return await super().exec(argv, **options)


@defect("test_stdin_is_passed_and_ends")
class DropsStdin(Box):
    async def exec(self, argv, stdin=None, **options):
        return await super().exec(argv, **options)


@defect("test_stdin_is_empty_by_default")
class FeedsSomething(Box):
    async def exec(self, argv, stdin=None, **options):
        return await super().exec(argv, stdin=b"y\n" if stdin is None else stdin, **options)


@defect("test_unread_stdin_is_no_failure")
class InsistsOnStdin(Box):
    async def exec(self, argv, stdin=None, timeout=None, max_output=0, **options):
        if not stdin:
            return await super().exec(argv, **options)
        process = await self.inner.spawn(argv, **options)
        await process.write(stdin)
        await process.close_stdin()
        return ExecResult(await process.wait(), await process.read(), b"")


@defect("test_streams_are_separate")
class MergesStreams(Box):
    async def exec(self, argv, **options):
        done = await super().exec(argv, **options)
        return replace(done, stdout=done.stdout + done.stderr, stderr=b"")


@defect("test_output_is_not_changed")
class DecodesOutput(Box):
    async def exec(self, argv, **options):
        done = await super().exec(argv, **options)
        return replace(done, stdout=done.stdout.decode(errors="replace").encode())


@defect("test_both_streams_beyond_the_pipe_buffer")
class KeepsOnePipeful(Box):
    async def exec(self, argv, **options):
        done = await super().exec(argv, **options)
        return replace(done, stdout=done.stdout[:65536], stderr=done.stderr[:65536])


@defect("test_huge_output_is_cut_in_the_middle")
class CutsAfterwards(Box):
    async def exec(self, argv, max_output=1 << 24, **options):
        done = await super().exec(argv, max_output=1 << 40, **options)
        head, tail = done.stdout[: max_output // 2], done.stdout[-max_output // 2 :]
        return replace(done, stdout=head + tail, truncated=True) if len(done.stdout) > max_output else done


@defect("test_huge_output_is_cut_in_the_middle")
class KeepsTheHeadOnly(Box):
    async def exec(self, argv, max_output=1 << 24, **options):
        done = await super().exec(argv, max_output=2 * max_output, **options)
        return replace(done, stdout=done.stdout[:max_output])


@defect("test_output_within_the_limit_is_complete")
class AlwaysTruncated(Box):
    async def exec(self, argv, **options):
        return replace(await super().exec(argv, **options), truncated=True)


@defect("test_parallel_commands_do_not_mix")
class SharesStdin(Box):
    stdin: bytes | None = None

    async def exec(self, argv, stdin=None, **options):
        self.stdin = stdin
        await asyncio.sleep(0.01)
        return await super().exec(argv, stdin=self.stdin, **options)


@defect("test_unknown_user_is_refused")
class IgnoresTheUser(Box):
    async def exec(self, argv, user=None, **options):
        return await super().exec(argv, **options)


@defect(
    "test_commands_run_as_the_user_asked_for test_a_user_cannot_read_what_belongs_to_root "
    "test_upload_belongs_to_the_user_asked_for",
    base="local",
)
class KnowsOnlyRoot(Box):
    async def exec(self, argv, user=None, **options):
        return await super().exec(argv, **options)

    async def upload(self, source, target, user=None, **options):
        await super().upload(source, target, **options)


@defect("test_upload_belongs_to_the_default_user", base="local")
class UploadsAsSomebodyElse(Box):
    async def upload(self, source, target, user=None, **options):
        other = next((u for u in self.info.users if u != self.info.default_user), None)
        if other is None:
            raise CapabilityMissing("one user only")
        await super().upload(source, target, user=user or other, **options)
