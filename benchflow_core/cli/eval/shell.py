"""`bench eval shell`: look into what an agent left."""

from __future__ import annotations

from pathlib import Path

import click

from benchflow_core.cli.ui import Ui

__all__ = ["shell"]


@click.command("shell")
@click.argument("rollout", type=click.Path(exists=True, file_okay=False))
@click.option("-c", "--command", help="Run this instead of an interactive shell.")
@click.pass_obj
def shell(ui: Ui, rollout: str, command: str | None) -> None:
    """Open a shell in a new box on the files that a rollout left. The box is removed when the shell ends.

    The job has to be run with --keep-state or --keep-on-failure. Files are as they were before the verifier; processes
    are not carried over.
    """
    from benchflow_core.cli.running import run_async

    raise SystemExit(run_async(_open(ui, Path(rollout), command)))


async def _open(ui: Ui, folder: Path, command: str | None) -> int:
    from benchflow_core.cli.shell import shell_in
    from benchflow_core.contracts.sandboxes import StartRequest
    from benchflow_core.errors import ConfigurationError
    from benchflow_core.rollout import Host
    from benchflow_core.rollout.state import read_state

    state = read_state(folder)
    if state is None or not state.captured:
        raise ConfigurationError(
            f"nothing was kept of {folder}.", remedy="Run the job with --keep-state all, or with --keep-on-failure."
        )
    last = state.captured[-1]
    async with Host() as host:
        provider = await host.provider(host.plugins.get("sandbox", state.sandbox), state.options)
        request = StartRequest(name=f"shell/{folder.name}", labels={"purpose": "shell", "rollout": folder.name})
        box = await provider.start(last.snapshot.image, request)
        try:
            ui.note(f"box {box.info.id} of sandbox {state.sandbox}, in {last.workdir}; exit to remove it")
            return await shell_in(box, last.workdir, {}, None, command)
        finally:
            await box.stop()
