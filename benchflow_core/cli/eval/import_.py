"""`bench eval import`: unpack a bundle."""

from __future__ import annotations

from pathlib import Path

import click

from benchflow_core.cli.ui import Ui

__all__ = ["import_bundle"]


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where the job goes.")
@click.option("--job-name", help="Another name for the job's folder.")
@click.pass_obj
def import_bundle(ui: Ui, file: str, jobs_dir: str, job_name: str | None) -> None:
    """Unpack a job that was exported with --bundle. Every file's hash is checked first."""
    from benchflow_core.results.bundle import read_bundle

    target, manifest = read_bundle(Path(file), Path(jobs_dir), job_name)
    data = {"job_dir": str(target), "files": len(manifest["files"]), "digest": manifest["digest"]}
    ui.emit(data, lambda: ui.out(f"{target}: {data['files']} files, {manifest['digest']}"))
