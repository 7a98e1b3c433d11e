"""The plugin: how a folder of this format is recognised and read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchflow_core.contracts import AdapterSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import Task

SIGNATURE = "{{name}}.json"


def detect(path: Path) -> bool:
    return (path / SIGNATURE).is_file()


def load(path: Path) -> Task:
    from {{module}}.reader import read_task

    return read_task(path, path / SIGNATURE)


@hookimpl
def benchflow_adapter() -> AdapterSpec:
    return AdapterSpec(summary="one-file tasks", signature=SIGNATURE, detect=detect, load=load, rank=60)
