"""Lay the tests into the box, run the script, read what it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchflow_core.contracts import ExecResult, TestOutcome, VerifyContext, VerifyResult
from benchflow_core.errors import RewardMissing, VerifierError, VerifierTimeout
from benchflow_verifier_script.ctrf import read_outcomes

__all__ = ["run_script"]

OUTPUT: Final = "test-stdout.txt"
_DIRECTLY = '[ -x "$1" ] || chmod +x "$1"; exec "$1" 2>&1'
_BY_SHELL = 'shell=$(command -v bash) || shell=/bin/sh; exec "$shell" "$1" 2>&1'
_COMMAND = 'cd "$2" && eval "$3" 2>&1'
"""A command of the task's own, more than one file: it runs where the tests are."""
_NOT_STARTED: Final = (126, 127)


async def run_script(context: VerifyContext) -> VerifyResult:
    """One run. Its exit code is reported; whether it matters is for the task's reward dialect to say."""
    settings = context.settings
    for folder in settings.tests:
        await context.sandbox.upload(folder, settings.tests_target, service=settings.service)
    await _make_links(context)
    script = f"{settings.tests_target.rstrip('/')}/{settings.script}"
    command = settings.params.get("command")
    how = _COMMAND if command else await _how_to_start(context, script)
    done = await context.sandbox.exec(
        ("/bin/sh", "-c", how, "sh", script, settings.tests_target, str(command or "")),
        cwd=context.workdir,
        env=context.env,
        user=context.user,
        timeout=settings.timeout,
        service=settings.service,
    )
    found = await context.collect(done.exit_code)
    (context.output_dir / OUTPUT).write_bytes(done.stdout + done.stderr)
    if done.timed_out:
        raise VerifierTimeout(f"{script} was still running after {settings.timeout:g} s", details=_details(done))
    try:
        rewards = context.task.dialect.parse(found)
    except RewardMissing as error:
        if done.exit_code in _NOT_STARTED and not found.files:
            raise _not_started(script, done) from error
        error.details |= _details(done)
        raise
    return VerifyResult(rewards, tests=_outcomes(context), exit_code=done.exit_code)


async def _make_links(context: VerifyContext) -> None:
    """Other names the tests go by; nothing of the agent's is there any more."""
    for link in context.settings.tests_links:
        argv = ("/bin/sh", "-c", 'rm -rf -- "$1" && ln -s "$2" "$1"', "sh", link, context.settings.tests_target)
        done = await context.sandbox.exec(argv, user="root", cwd="/", timeout=60)
        if done.exit_code:
            raise VerifierError(f"{link} could not be made: {_tail(done, 300)}", details=_details(done))


async def _how_to_start(context: VerifyContext, script: str) -> str:
    """As a program of its own; a script without a first line is run by a shell, as shells do it."""
    source = _source(context)
    if source is None:
        return _DIRECTLY
    with source.open("rb") as file:
        first = file.readline(512)
    if not first.startswith(b"#!"):
        return _BY_SHELL
    if first.endswith(b"\r\n"):
        raise VerifierError(
            f"{source} has Windows line endings: the system looks for an interpreter called "
            f"{first[2:-2].decode('utf-8', 'replace').strip()!r} followed by a carriage return.",
            remedy="Save it with Unix line endings.",
        )
    if context.user not in (None, "root", "0"):
        argv = ("/bin/chmod", "+x", script)
        await context.sandbox.exec(argv, user="root", cwd="/", timeout=60, service=context.settings.service)
    return _DIRECTLY


def _source(context: VerifyContext) -> Path | None:
    """The script on the host; nothing where the verifier's own image holds it."""
    paths = [folder / context.settings.script for folder in reversed(context.settings.tests)]
    return next((path for path in paths if path.is_file()), None)


def _outcomes(context: VerifyContext) -> tuple[TestOutcome, ...]:
    return read_outcomes(context.output_dir / "ctrf.json")


def _details(done: ExecResult) -> dict[str, object]:
    return {"exit_code": done.exit_code, "oom_killed": done.oom_killed, "output": _tail(done)}


def _not_started(script: str, done: ExecResult) -> VerifierError:
    return VerifierError(
        f"{script} could not be started: {_tail(done, 300) or f'exit code {done.exit_code}'}",
        remedy="Its first line must name an interpreter that the image has, and the programs it calls must be there.",
        details=_details(done),
    )


def _tail(done: ExecResult, limit: int = 2000) -> str:
    return (done.stdout + done.stderr)[-limit:].decode("utf-8", "replace").strip()
