"""A shell in a task's box, over the same duplex process agents run on."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from benchflow_core.cli.ui import Ui
from benchflow_core.contracts.common import private_folder
from benchflow_core.contracts.sandboxes import Process, Sandbox
from benchflow_core.errors import TransportError
from benchflow_core.rollout import Host, Rollout, RolloutConfig
from benchflow_core.rollout.defaults import agent_for

__all__ = ["open_shell", "shell_in"]

# `script` gives the shell a terminal of its own where the box has it; without one, line editing is missing.
_INTERACTIVE = """
shell=$(command -v bash || command -v sh)
if command -v script >/dev/null 2>&1; then exec script -qec "$shell -i" /dev/null; fi
exec "$shell" -i
"""


async def open_shell(ui: Ui, task: str, sandbox: str | None, *, allow_substitute: bool, command: str | None) -> int:
    """Start the box as a rollout would, run the shell, remove the box. The exit code is the shell's."""
    with private_folder() as folder:
        async with Host() as host:
            agent = agent_for("null", host.plugins).name
            config = RolloutConfig(
                Path(task), sandbox=sandbox, agent=agent, allow_substitute=allow_substitute, jobs_dir=folder
            )
            rollout = await Rollout.create(config, host)
            try:
                await rollout.setup()
                await rollout.start()
                await rollout.install_agent()
                where = f"box {rollout.sandbox.info.id} of sandbox {rollout.plan.sandbox.name}"
                ui.note(f"{where}, in {rollout.workdir}; exit to remove it")
                env = {"HOME": rollout.agent_home}
                return await shell_in(rollout.sandbox, rollout.workdir, env, rollout.agent_user, command)
            finally:
                await rollout.cleanup()


async def shell_in(
    sandbox: Sandbox, workdir: str, env: Mapping[str, str], user: str | None, command: str | None
) -> int:
    """A shell, or one command, with our standard streams. The exit code is its own."""
    argv = ("sh", "-c", command or _INTERACTIVE)
    env = {**env, "TERM": os.environ.get("TERM", "dumb")}
    return await _attach(await sandbox.spawn(argv, cwd=workdir, env=env, user=user))


async def _attach(process: Process) -> int:
    """Our standard streams to its standard streams, until it ends."""
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


async def _copy(read: object, target: int) -> None:
    while data := await read():  # type: ignore[operator]
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
