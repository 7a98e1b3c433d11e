"""`bench eval export` and `import`: a job for a colleague as one file, or in the format of an exporter."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from benchflow_command_results.show import jobs_dir_option
from benchflow_core.contracts import CommandContext
from benchflow_core.errors import UsageError

__all__ = ["export", "import_bundle"]


def _exporters(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    ui: CommandContext = ctx.obj
    return ui.complete("exporter", incomplete)


@click.command("export")
@click.argument("job", required=False, metavar="JOB")
@click.option(
    "--bundle", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="One redacted, hashed zip file."
)
@click.option("--format", "form", shell_complete=_exporters, help="An installed exporter; --list shows them.")
@click.option("--option", "options", multiple=True, metavar="K=V", help="An option of the exporter; repeatable.")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="PATH", help="Where to write; else beside each rollout."
)
@click.option("--list", "listing", is_flag=True, help="List the installed exporters.")
@jobs_dir_option
@click.pass_obj
def export(
    ui: CommandContext,
    job: str | None,
    bundle: Path | None,
    form: str | None,
    options: tuple[str, ...],
    output: Path | None,
    listing: bool,
    jobs_dir: Path,
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
    from benchflow_command_results.jobs import find_folder

    path = find_folder(job, jobs_dir)
    if bundle is not None:
        _bundle(ui, path, bundle)
    else:
        _convert(ui, path, str(form), _pairs(options), output)


def _pairs(options: tuple[str, ...]) -> dict[str, str]:
    for option in options:
        if option.find("=") < 1:
            raise UsageError(f"--option '{option}': expected KEY=VALUE.")
    return {key: value for key, _, value in (option.partition("=") for option in options)}


def _list(ui: CommandContext) -> None:
    rows = [{"name": found.name, "summary": found.spec.summary} for found in ui.core().plugins("exporter")]

    def text() -> None:
        if rows:
            ui.table(["FORMAT", "WHAT"], [[row["name"], row["summary"]] for row in rows])
        else:
            ui.note("no exporter is installed; --bundle needs none")

    ui.emit(rows, text)


def _bundle(ui: CommandContext, path: Path, target: Path) -> None:
    from benchflow_command_results.bundle import write_bundle

    manifest = write_bundle(path, target, ui.core().hide)
    files, redacted = len(manifest["files"]), manifest["redacted"]
    data = {"bundle": str(target), "files": files, "redacted": redacted, "digest": manifest["digest"]}

    def text() -> None:
        ui.out(f"{target}: {files} files, {manifest['digest']}")
        if redacted:
            ui.note(f"{len(redacted)} files had something to hide: keys, or the path of your home folder")
        ui.note("What agents and tools said is in it: look it through before you publish it.")

    ui.emit(data, text)


def _convert(ui: CommandContext, path: Path, form: str, options: dict[str, str], output: Path | None) -> None:
    from benchflow_command_results.export import export_job

    core = ui.core()
    written = [str(file) for file in export_job(core, path, core.plugin("exporter", form), options, output)]
    ui.emit({"format": form, "files": written}, lambda: ui.out("\n".join(written)))


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--jobs-dir",
    type=click.Path(path_type=Path),
    default="jobs",
    show_default=True,
    help="Where the job goes.",
)
@click.option("--job-name", help="Another name for the job's folder.")
@click.pass_obj
def import_bundle(ui: CommandContext, file: Path, jobs_dir: Path, job_name: str | None) -> None:
    """Unpack a job that was exported with --bundle. Every file's hash is checked first."""
    from benchflow_command_results.bundle import read_bundle

    target, manifest = read_bundle(file, jobs_dir, job_name)
    data = {"job_dir": str(target), "files": len(manifest["files"]), "digest": manifest["digest"]}
    ui.emit(data, lambda: ui.out(f"{target}: {data['files']} files, {manifest['digest']}"))
