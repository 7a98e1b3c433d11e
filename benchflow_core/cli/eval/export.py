"""`bench eval export`: a job for a colleague, or in another format."""

from __future__ import annotations

from pathlib import Path

import click

from benchflow_core.cli.completion import plugin_name
from benchflow_core.cli.options import key_values
from benchflow_core.cli.ui import Ui
from benchflow_core.errors import UsageError

__all__ = ["export"]


@click.command("export")
@click.argument("job", required=False, metavar="JOB")
@click.option("--bundle", type=click.Path(dir_okay=False), metavar="FILE", help="One redacted, hashed zip file.")
@click.option(
    "--format", "form", shell_complete=plugin_name("exporter"), help="An installed exporter; --list shows them."
)
@click.option("--option", "options", multiple=True, metavar="K=V", help="An option of the exporter; repeatable.")
@click.option("--output", type=click.Path(), metavar="PATH", help="Where to write; else beside each rollout.")
@click.option("--list", "listing", is_flag=True, help="List the installed exporters.")
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where jobs are by name.")
@click.pass_obj
def export(
    ui: Ui,
    job: str | None,
    bundle: str | None,
    form: str | None,
    options: tuple[str, ...],
    output: str | None,
    listing: bool,
    jobs_dir: str,
) -> None:
    """Pack a job for a colleague, or write its rollouts in another format.

    \b
    bench eval export JOB --bundle job.zip       then, elsewhere: bench eval import job.zip
    bench eval export JOB --format NAME --output FILE
    """
    if listing:
        _list(ui)
        return
    if job is None or (bundle is None) == (form is None):
        raise UsageError("name a JOB, and either --bundle FILE or --format NAME.", remedy="--list shows the formats.")
    from benchflow_core.results.jobs import find_folder

    path = find_folder(job, Path(jobs_dir))
    if bundle is not None:
        _bundle(ui, path, Path(bundle))
    else:
        _convert(ui, path, str(form), key_values(options, "--option"), Path(output) if output else None)


def _list(ui: Ui) -> None:
    from benchflow_core.plugins import registry

    rows = [{"name": found.name, "summary": found.spec.summary} for found in registry().all("exporter")]

    def text() -> None:
        if rows:
            ui.table(["FORMAT", "WHAT"], [[row["name"], row["summary"]] for row in rows])
        else:
            ui.note("no exporter is installed; --bundle needs none")

    ui.emit(rows, text)


def _bundle(ui: Ui, path: Path, target: Path) -> None:
    from benchflow_core.dotenv import user_env
    from benchflow_core.results.bundle import write_bundle
    from benchflow_core.results.redact import Redactor

    env = user_env()
    manifest = write_bundle(path, target, Redactor.from_env(env), env.get("HOME"))
    files, redacted = len(manifest["files"]), manifest["redacted"]
    data = {"bundle": str(target), "files": files, "redacted": redacted, "digest": manifest["digest"]}

    def text() -> None:
        ui.out(f"{target}: {files} files, {manifest['digest']}")
        if redacted:
            ui.note(f"{len(redacted)} files had something to hide: keys, or the path of your home folder")
        ui.note("What agents and tools said is in it: look it through before you publish it.")

    ui.emit(data, text)


def _convert(ui: Ui, path: Path, form: str, options: dict[str, str], output: Path | None) -> None:
    from benchflow_core.evaluation.export import export_job
    from benchflow_core.plugins import registry

    written = [str(file) for file in export_job(path, registry().get("exporter", form), options, output)]
    ui.emit({"format": form, "files": written}, lambda: ui.out("\n".join(written)))
