"""A shell in a box: one made for a task, or one on the files that a rollout left."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchflow_command_authoring.completion import one_of
from benchflow_core.contracts import Process, Sandbox, private_folder
from benchflow_core.errors import TransportError

if TYPE_CHECKING:
    from benchflow_core.contracts import CommandContext

__all__ = ["rollout_shell", "task_shell"]

# `script` gives the shell a terminal of its own where the box has it; without one, line editing is missing.
_INTERACTIVE = """
shell=$(command -v bash || command -v sh)
if command -v script >/dev/null 2>&1; then exec script -qec "$shell -i" /dev/null; fi
exec "$shell" -i
"""


@click.command("shell")
@click.argument("task", type=click.Path(exists=True, file_okay=False, path_type=Path), shell_complete=one_of("task"))
@click.option(
    "--sandbox",
    "-e",
    "name",
    shell_complete=one_of("sandbox"),
    help="Where; without it the best-ranked that answers.",
)
@click.option(
    "--allow-substitute", is_flag=True, help="Use the sandbox's own files where it cannot have the task's image."
)
@click.option("-c", "--command", help="Run this instead of an interactive shell.")
@click.pass_obj
def task_shell(ui: CommandContext, task: Path, name: str | None, allow_substitute: bool, command: str | None) -> None:
    """Open a shell in a task's box. The box is removed when the shell ends."""
    work = _in_box_of_task(ui, task, name, allow_substitute=allow_substitute, command=command)
    raise SystemExit(ui.core().run(work))


@click.command("shell")
@click.argument("rollout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-c", "--command", help="Run this instead of an interactive shell.")
@click.pass_obj
def rollout_shell(ui: CommandContext, rollout: Path, command: str | None) -> None:
    """Open a shell in a new box on the files that a rollout left. The box is removed when the shell ends.

    The job has to be run with --keep-state or --keep-on-failure. Files are as they were before the verifier; processes
    are not carried over.
    """
    raise SystemExit(ui.core().run(_in_kept_box(ui, rollout, command)))


async def _in_box_of_task(
    ui: CommandContext, task: Path, sandbox: str | None, *, allow_substitute: bool, command: str | None
) -> int:
    """Start the box as a rollout would, run the shell, remove the box. The exit code is the shell's."""
    core = ui.core()
    with private_folder() as folder:
        async with core.host() as host:
            rollout = await host.rollout(
                task,
                sandbox=sandbox,
                agent=core.agent_for("null"),
                allow_substitute=allow_substitute,
                jobs_dir=folder,
            )
            try:
                await rollout.setup()
                await rollout.start()
                await rollout.install_agent()
                where = f"box {rollout.sandbox.info.id} of sandbox {rollout.plan.sandbox.name}"
                ui.note(f"{where}, in {rollout.workdir}; exit to remove it")
                env = {"HOME": rollout.agent_home}
                return await _shell(rollout.sandbox, rollout.workdir, env, rollout.agent_user, command)
            finally:
                await rollout.cleanup()


async def _in_kept_box(ui: CommandContext, rollout: Path, command: str | None) -> int:
    async with ui.core().host() as host, host.kept_box(rollout) as (box, workdir, sandbox):
        ui.note(f"box {box.info.id} of sandbox {sandbox}, in {workdir}; exit to remove it")
        return await _shell(box, workdir, {}, None, command)


async def _shell(sandbox: Sandbox, workdir: str, env: Mapping[str, str], user: str | None, command: str | None) -> int:
    """Run a shell, or one command, with our standard streams. The exit code is its own."""
    argv = ("sh", "-c", command or _INTERACTIVE)
    env = {**env, "TERM": os.environ.get("TERM", "dumb")}
    return await _attach(await sandbox.spawn(argv, cwd=workdir, env=env, user=user))


async def _attach(process: Process) -> int:
    """Connect our standard streams with those of a process until it ends."""
    copying = [
        asyncio.create_task(_copy(process.read, sys.stdout.fileno())),
        asyncio.create_task(_copy(process.read_stderr, sys.stderr.fileno())),
    ]
    feeding = asyncio.create_task(_feed(process))
    try:
        code = await process.wait()
        await asyncio.gather(*copying)
        return code if code >= 0 else 128 - code
    finally:
        feeding.cancel()
        await process.kill()


async def _copy(read: Callable[[], Awaitable[bytes]], target: int) -> None:
    while data := await read():
        await asyncio.to_thread(os.write, target, data)


async def _feed(process: Process) -> None:
    """Standard input may be a terminal, a pipe, a file or nothing: a thread of its own reads them all alike."""
    loop, typed = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        data = b"x"
        while data:
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            with suppress(RuntimeError):  # the loop is gone: so is the shell
                loop.call_soon_threadsafe(typed.put_nowait, data)

    threading.Thread(target=read, name="shell-input", daemon=True).start()
    with suppress(TransportError):
        while data := await typed.get():
            await process.write(data)
        await process.close_stdin()
