"""`bench view`: parse, open, serve or export."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchflow_core.contracts import CommandContext

if TYPE_CHECKING:
    from benchflow_command_view.documents import Documents
    from benchflow_command_view.server import ViewServer

__all__ = ["view"]

_PATIENCE = 0.7


@click.command("view")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Listen on this port; else a free one."
)
@click.option("--no-open", is_flag=True, help="Only print the address; do not open a browser.")
@click.option(
    "--export", "target", metavar="FILE.html|DIR", help="Write one self-contained file, or a folder, and stop."
)
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where jobs are by name.")
@click.pass_obj
def view(
    ui: CommandContext, paths: tuple[str, ...], port: int, no_open: bool, target: str | None, jobs_dir: str
) -> None:
    """Look at jobs, rollouts and agent sessions in a browser.

    PATH is a job, a rollout, a folder of jobs, or a session file of Claude Code, Codex or ACP; several jobs are
    compared. Without it: everything below --jobs-dir.

    \b
    bench view                          every job below jobs/
    bench view latest                   the newest one, live while it runs
    bench view JOB JOB                  side by side, paired by task
    bench view JOB --export job.html    one file to share: redacted, opens without a server
    """
    from benchflow_command_view.catalogue import JobCatalogue
    from benchflow_command_view.documents import Documents

    reader = ui.results()
    found = [Path(path) if Path(path).is_file() else reader.find(path, Path(jobs_dir)) for path in paths]
    catalogue = JobCatalogue(reader, found or [reader.find(jobs_dir, Path(jobs_dir))])
    documents = Documents(reader, catalogue, float("inf") if target else _PATIENCE)
    if target is not None:
        _export(ui, documents, Path(target))
    else:
        _serve(ui, documents, port, opened=not no_open)


def _export(ui: CommandContext, documents: Documents, target: Path) -> None:
    from benchflow_command_view.export import export_file, export_folder

    single = target.suffix.lower() in (".html", ".htm")
    told = export_file(documents, target) if single else export_folder(documents, target)
    size = told["data_bytes"] + told["page_bytes"]
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"

    def text() -> None:
        ui.out(f"{target}: {shown}, {told['documents']} documents")
        ui.note("Known secrets, keys and your home folder were taken out. What agents and tools said is in it:")
        ui.note("look it through before you publish it.")

    ui.emit({"export": str(target), **told}, text)


def _serve(ui: CommandContext, documents: Documents, port: int, *, opened: bool) -> None:
    from benchflow_command_view.server import ViewServer

    with ViewServer(documents, port, ui.warn) as server, _stopped_by_signals(server):
        ui.emit({"url": server.url, "port": server.server_port}, lambda: ui.out(server.url))
        ui.note("Ctrl-C stops it. The address holds a token: whoever has it can read these results.")
        _flush()
        server.warm()
        with _browser(server) if opened else nullcontext():
            server.serve_forever(poll_interval=0.1)


@contextmanager
def _stopped_by_signals(server: ViewServer) -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does: quietly, and the file for the browser is taken away."""
    import signal
    from threading import Thread

    def stop(*_: object) -> None:
        Thread(target=server.shutdown, daemon=True).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _browser(server: ViewServer) -> Iterator[None]:
    """Opened through a file that only the user can read: on a command line everybody could read the token."""
    import os
    import sys
    import webbrowser

    from benchflow_core.contracts import private_folder

    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield  # a text browser would take the terminal
        return
    with private_folder() as folder:
        page = folder / "open.html"
        page.touch(0o600)
        page.write_text(
            f'<meta http-equiv="refresh" content="0;url={server.url}"><meta name="referrer" content="no-referrer">'
        )
        webbrowser.open(page.as_uri())
        yield


def _flush() -> None:
    import sys

    sys.stdout.flush()
