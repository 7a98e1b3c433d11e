"""Which format a task folder has, and the native task that it stands for. Nothing is built, and nothing runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import unwrap
from pathlib import Path
from typing import Any

from benchflow_core.contracts.adapters import AdapterSpec
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import TaskError
from benchflow_core.task.load import adapter_of, load_task

__all__ = ["HarborAdapter", "InboundAdapter", "InboundTask", "detect_adapter"]

InboundTask = Task


@dataclass(frozen=True)
class InboundAdapter:
    """One installed format."""

    name: str
    spec: AdapterSpec

    def from_task_dir(self, task_dir: str | Path) -> InboundTask:
        """The task in memory. Raises `TaskError` for a folder of another format, or one that is broken."""
        path = Path(task_dir)
        if not _same((found := adapter_of(path)).spec.load, self.spec.load):
            raise TaskError(f"{path} is a task of the format '{found.name}', not '{self.name}'.")
        return load_task(path)


class HarborAdapter(InboundAdapter):
    """Harbor's folders, known by their `task.toml`."""

    def __init__(self) -> None:
        super().__init__("harbor", _harbor())


def detect_adapter(task_dir: str | Path) -> InboundAdapter:
    """The adapter whose format a folder has. Raises `TaskError` where it is none's."""
    found = adapter_of(Path(task_dir))
    return HarborAdapter() if _same(found.spec.load, _harbor().load) else InboundAdapter(found.name, found.spec)


def _harbor() -> AdapterSpec:
    from benchflow_adapter_harbor.harbor import benchflow_adapter

    return benchflow_adapter()


def _same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether it is one function; the core may hold it inside another that watches it."""
    return unwrap(one) is unwrap(other)
