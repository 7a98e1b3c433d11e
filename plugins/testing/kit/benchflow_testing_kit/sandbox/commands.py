"""`exec`: exit codes, arguments, environment, streams."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from benchflow_core.contracts import Sandbox
from benchflow_core.errors import BenchflowError
from benchflow_testing_kit.host import peak_memory
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import Bench, ok, sh
from benchflow_testing_kit.suite import needs

__all__ = ["CommandTests"]

MEGA = 1 << 20
ODD_TEXTS = (
    "",
    " two  spaces ",
    "quote ' double \" back ` slash \\ end",
    "$HOME $(id) ${X:-y} %s \\n",
    "line one\nline two\n",
    "ünïcødé 漢字 🦊",
    "* ? [a] ~ # ! & | ; < >",
    "-n",
    "tab\tand bell\x07",
)


class CommandTests(SandboxSuite):
    """One command at a time, run to its end."""

    @pytest.mark.parametrize("code", [0, 1, 3, 125, 255])
    async def test_exit_code_is_passed_on(self, box: Sandbox, code: int) -> None:
        assert (await sh(box, f"exit {code}")).exit_code == code

    @pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15), ("SEGV", 11)])
    async def test_death_by_signal_is_negative(self, box: Sandbox, name: str, number: int) -> None:
        assert (await sh(box, f"kill -{name} $$")).exit_code == -number

    async def test_missing_program_gives_127(self, box: Sandbox, scratch: str) -> None:
        for program in ("no-such-program-of-the-kit", f"{scratch}/missing"):
            done = await box.exec([program])
            assert (done.exit_code, done.timed_out) == (127, False)
            assert done.stderr.strip(), "stderr says why"

    async def test_unexecutable_program_gives_126(self, box: Sandbox, scratch: str) -> None:
        await ok(box, 'echo "echo ran" >"$1/plain"; chmod 644 "$1/plain"; mkdir "$1/folder"', scratch)
        for program in (f"{scratch}/plain", f"{scratch}/folder"):
            done = await box.exec([program])
            assert (done.exit_code, done.stdout) == (126, b"")
            assert done.stderr.strip(), "stderr says why"

    async def test_arguments_arrive_unchanged(self, box: Sandbox) -> None:
        done = await sh(box, 'for a; do printf "%s\\000" "$a"; done', *ODD_TEXTS)
        assert done.stdout == b"".join(text.encode() + b"\0" for text in ODD_TEXTS)

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    async def test_environment_arrives_unchanged(self, box: Sandbox, text: str) -> None:
        done = await sh(box, 'printf "%s" "${KIT_VALUE-unset}"', env={"KIT_VALUE": text})
        assert done.stdout == text.encode()

    async def test_environment_of_one_command_does_not_reach_the_next(self, box: Sandbox) -> None:
        assert await ok(box, 'printf "%s" "$KIT_ONCE"', env={"KIT_ONCE": "here"}) == "here"
        assert await ok(box, 'printf "%s" "${KIT_ONCE-unset}"') == "unset"

    async def test_environment_of_the_box_reaches_every_command(self, bench: Bench) -> None:
        box = await bench.start(env={"KIT_BOX": "of the\nbox", "KIT_BOTH": "box"})
        show = 'printf "%s|%s|%s" "$KIT_BOX" "$KIT_BOTH" "${PATH:+path}"'
        assert await ok(box, show) == "of the\nbox|box|path"
        assert await ok(box, show, env={"KIT_BOTH": "command"}) == "of the\nbox|command|path"

    async def test_host_environment_stays_outside(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KIT_HOST_ONLY", "host")
        box = await bench.start()
        assert await ok(box, 'printf "%s" "${KIT_HOST_ONLY-unset}"') == "unset"

    async def test_working_directory(self, box: Sandbox, scratch: str) -> None:
        assert await ok(box, "pwd -P") == await ok(box, 'cd "$1" && pwd -P', box.info.workdir)
        await ok(box, 'mkdir "$1/a b ü"', scratch)
        assert (await ok(box, "pwd", cwd=f"{scratch}/a b ü")).endswith("/a b ü\n")

    async def test_stdin_is_passed_and_ends(self, box: Sandbox) -> None:
        data = bytes(range(256)) * 1000
        done = await box.exec(["cat"], stdin=data, timeout=30)
        assert (done.exit_code, done.stdout == data) == (0, True)

    async def test_stdin_is_empty_by_default(self, box: Sandbox) -> None:
        done = await box.exec(["cat"], timeout=20)
        assert (done.exit_code, done.stdout, done.timed_out) == (0, b"", False)

    async def test_unread_stdin_is_no_failure(self, box: Sandbox) -> None:
        done = await sh(box, "exit 4", stdin=b"x" * (4 * MEGA), timeout=30)
        assert (done.exit_code, done.timed_out) == (4, False)

    async def test_streams_are_separate(self, box: Sandbox) -> None:
        done = await sh(box, "printf out; printf err >&2")
        assert (done.stdout, done.stderr) == (b"out", b"err")

    async def test_output_is_not_changed(self, box: Sandbox) -> None:
        data = bytes(range(256)) + b"\r\n\x1b[0m\xff\xfe"
        done = await box.exec(["cat"], stdin=data)
        assert done.stdout == data

    async def test_both_streams_beyond_the_pipe_buffer(self, box: Sandbox) -> None:
        """A reader that takes one stream after the other never gets to the end of this."""
        script = """
            block=$(printf '%01024d' 0); i=0
            while [ $i -lt 1024 ]; do echo "$block"; i=$((i+1)); done >&2
            while [ $i -lt 2048 ]; do echo "$block"; i=$((i+1)); done
            cat >/dev/null; echo end >&2"""
        async with asyncio.timeout(60):
            done = await sh(box, script, stdin=b"x" * MEGA, timeout=50)
        assert (done.exit_code, len(done.stdout), len(done.stderr)) == (0, 1025 * 1024, 1025 * 1024 + 4)
        assert not done.truncated

    async def test_huge_output_is_cut_in_the_middle(self, box: Sandbox) -> None:
        script = 'echo HEAD; dd if=/dev/zero bs=65536 count=1024 2>/dev/null | tr "\\000" x; echo; echo TAIL'
        with peak_memory() as peak:
            done = await sh(box, script, max_output=MEGA, timeout=90)
        assert done.exit_code == 0 and done.truncated
        assert MEGA // 4 < len(done.stdout) <= MEGA + 1024
        assert done.stdout.startswith(b"HEAD\n") and done.stdout.endswith(b"\nTAIL\n"), "head and tail are kept"
        assert peak.bytes < 32 * MEGA, f"64 MB of output took {peak.bytes >> 20} MB of memory"

    async def test_output_within_the_limit_is_complete(self, box: Sandbox) -> None:
        done = await box.exec(["cat"], stdin=b"y" * 5000, max_output=5000)
        assert (len(done.stdout), done.truncated) == (5000, False)

    async def test_parallel_commands_do_not_mix(self, box: Sandbox) -> None:
        script = 'i=0; while [ $i -lt 200 ]; do echo "$1 $i"; i=$((i+1)); done; cat; exit "$1"'
        results = await asyncio.gather(*(sh(box, script, str(n), stdin=b"%d" % n) for n in range(32)))
        for n, done in enumerate(results):
            expected = "".join(f"{n} {i}\n" for i in range(200)) + str(n)
            assert (done.exit_code, done.stdout.decode()) == (n, expected)

    @needs("users")
    async def test_commands_run_as_the_user_asked_for(self, box: Sandbox) -> None:
        assert await ok(box, "id -un") == f"{box.info.default_user}\n"
        assert len(box.info.users) > 1, "`users` is declared, so `info.users` names more than one"
        for user in box.info.users:
            assert await ok(box, "id -un", user=user) == f"{user}\n"

    @needs("users")
    async def test_a_user_cannot_read_what_belongs_to_root(self, box: Sandbox, scratch: str) -> None:
        other = next(u for u in box.info.users if u != "root")
        await ok(box, 'echo secret >"$1/f"; chmod 600 "$1/f"; chmod 755 "$1"', scratch, user="root")
        assert (await sh(box, 'cat "$1/f"', scratch, user=other)).exit_code != 0

    async def test_unknown_user_is_refused(self, box: Sandbox, scratch: str) -> None:
        """It may raise or fail; it must not quietly run as somebody else."""
        await ok(box, 'chmod 777 "$1"', scratch)
        with contextlib.suppress(BenchflowError):
            done = await sh(box, 'touch "$1/ran"', scratch, user="no-such-user-of-the-kit")
            assert done.exit_code != 0
        assert (await sh(box, '[ -e "$1/ran" ]', scratch)).exit_code != 0
