"""The plugin for BenchFlow's single-document tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchflow_core.contracts import AdapterSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import Finding, Migration, Scaffold, ScaffoldRequest, Task


def detect(path: Path) -> bool:
    """A `task.md` beside a `task.toml` counts only with frontmatter: otherwise it is somebody's notes."""
    document = path / "task.md"
    if not document.is_file():
        return False
    if not (path / "task.toml").is_file():
        return True
    with document.open("rb") as file:
        return file.readline(64).strip() == b"---"


def load(path: Path) -> Task:
    from benchflow_adapter_harbor.taskmd_load import load_taskmd

    return load_taskmd(path)


def lint(path: Path) -> list[Finding]:
    from benchflow_adapter_harbor.lint import lint_taskmd

    return lint_taskmd(path)


def scaffold(request: ScaffoldRequest) -> Scaffold:
    from benchflow_adapter_harbor.scaffold import scaffold_taskmd

    return scaffold_taskmd(request)


def migrate(path: Path) -> Migration:
    from benchflow_adapter_harbor.migrate import migrate_to_taskmd

    return migrate_to_taskmd(path)


@hookimpl
def benchflow_adapter() -> AdapterSpec:
    return AdapterSpec(
        summary="BenchFlow task.md documents",
        signature="task.md",
        detect=detect,
        load=load,
        lint=lint,
        scaffold=scaffold,
        migrate=migrate,
        rank=40,
    )
