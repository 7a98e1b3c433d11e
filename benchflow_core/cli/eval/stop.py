"""`bench eval stop`: end a job that runs elsewhere."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import click

from benchflow_core.cli.ui import Ui
from benchflow_core.errors import ConfigurationError

__all__ = ["stop"]


@click.command("stop")
@click.argument("job", type=click.Path(exists=True, file_okay=False))
@click.option("--now", is_flag=True, help="Tear down what runs instead of finishing it.")
@click.pass_obj
def stop(ui: Ui, job: str, now: bool) -> None:
    """Stop a job that runs in the background or in another terminal. It can be resumed."""
    from benchflow_core.evaluation.joblock import owner_of

    owner = owner_of(Path(job))
    if owner is None or "pid" not in owner:
        raise ConfigurationError(f"nobody is running {job}.")
    if owner.get("host") != socket.gethostname():
        raise ConfigurationError(f"{job} is run on {owner['host']}.", remedy="Stop it there.")
    os.kill(owner["pid"], signal.SIGTERM if now else signal.SIGINT)
    how = "stops and tears down" if now else "finishes what it runs and starts nothing more"
    ui.emit({"pid": owner["pid"], "now": now}, lambda: ui.out(f"Process {owner['pid']} {how}."))
