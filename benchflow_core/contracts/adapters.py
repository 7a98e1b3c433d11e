"""Inbound adapters: read a task format into the native task. Pure: no box, no network, no code of the task runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from benchflow_core.contracts.common import CheckFn, no_checks
from benchflow_core.contracts.tasks import Task
from benchflow_core.quick import dataclass

__all__ = ["AdapterSpec", "Finding", "JobFile", "Migration", "Scaffold", "ScaffoldRequest"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark of `bench tasks check`."""

    severity: Literal["error", "warning", "info"]
    message: str
    file: Path | None = None
    line: int | None = None
    remedy: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class ScaffoldRequest:
    """A new task to write: `bench tasks init`."""

    name: str
    """Of the folder, already checked to be one plain name."""
    solution: bool = True
    pytest: bool = True
    """False: the test is a shell script alone."""


@dataclass(frozen=True, slots=True)
class Scaffold:
    """A task that loads, passes its own solution and fails without one."""

    files: Mapping[str, str]
    """Relative path to text, executable where it starts with `#!`."""
    next_steps: tuple[str, ...] = ()
    """For people: what to edit first."""


@dataclass(frozen=True, slots=True)
class Migration:
    """How a folder of another format becomes one of this: nothing is written until the core applies it."""

    files: Mapping[str, str]
    """Relative path to text."""
    superseded: tuple[str, ...] = ()
    """Files of the old format that say the same: removed only when asked for."""
    losses: tuple[str, ...] = ()
    """What the new format cannot say, one line each."""


class JobFile(Protocol):
    """A job file that is being read: where its values are, and what may become of them."""

    def where(self, *at: Any) -> str:
        """The place of a value, keys and indices from the top: file and line."""

    def refuse_unknown(self, value: Mapping[str, Any], known: Iterable[str], *at: Any) -> None:
        """Raise for a key that is none of those, with its line and the nearest right word."""

    def take(self, values: dict[str, Any], name: str, value: Any, *at: Any) -> None:
        """Set the core's setting `name` to what the file says at another place; both together are refused."""


@dataclass(frozen=True, slots=True)
class AdapterSpec:
    """A task format.

    Example::

        @hookimpl
        def benchflow_adapter() -> AdapterSpec:
            return AdapterSpec(summary="Harbor task folders", signature="task.toml",
                               detect=lambda p: (p / "task.toml").is_file(), load=load_harbor)
    """

    summary: str
    signature: str
    """For people: the file that gives the format away."""
    detect: Callable[[Path], bool]
    load: Callable[[Path], Task]
    """Raises `TaskError` with file and line."""
    check: CheckFn = no_checks
    lint: Callable[[Path], list[Finding]] | None = None
    """Format-specific findings for `bench tasks check`, beyond loading."""
    rank: int = 50
    """Where two formats match one folder, the lower wins."""
    scaffold: Callable[[ScaffoldRequest], Scaffold] | None = None
    """For `bench tasks init --format NAME`."""
    scaffold_rank: int = 50
    """Among the formats with a `scaffold`, the lowest is what `bench tasks init` writes where no format is named."""
    rewrite_job: Callable[[dict[str, Any], JobFile], None] | None = None
    """Rewrites, in place, the settings of a job file that has the format's own shape. Asked with a file that has a key
    which the core does not know; it leaves what is not its own."""
    migrate: Callable[[Path], Migration] | None = None
    """For `bench tasks migrate --to NAME`: raises `TaskError` for a folder it cannot turn into this format."""
