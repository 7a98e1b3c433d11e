"""The plugin for Harbor task folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import AdapterSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import Finding, JobFile, Scaffold, ScaffoldRequest, Task


def detect(path: Path) -> bool:
    return (path / "task.toml").is_file()


def load(path: Path) -> Task:
    from benchflow_adapter_harbor.harbor_load import load_harbor

    return load_harbor(path)


def lint(path: Path) -> list[Finding]:
    from benchflow_adapter_harbor.lint import lint_harbor

    return lint_harbor(path)


def scaffold(request: ScaffoldRequest) -> Scaffold:
    from benchflow_adapter_harbor.scaffold import scaffold_harbor

    return scaffold_harbor(request)


def rewrite_job(values: dict[str, Any], file: JobFile) -> None:
    from benchflow_adapter_harbor import job_file

    job_file.rewrite_job(values, file)


@hookimpl
def benchflow_adapter() -> AdapterSpec:
    return AdapterSpec(
        summary="Harbor task folders",
        signature="task.toml",
        detect=detect,
        load=load,
        lint=lint,
        scaffold=scaffold,
        scaffold_rank=10,
        rewrite_job=rewrite_job,
        rank=50,
    )
