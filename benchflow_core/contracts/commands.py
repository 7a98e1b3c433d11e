"""Commands: a plugin may add `bench NAME`. The entry-point name is the command's; help comes from its metadata.

An entry point called `eval.NAME` is `bench eval NAME`; with the same module as `NAME` it is the same command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from benchflow_core.contracts.common import CheckFn, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    import click

    from benchflow_core.contracts.results import ResultsReader

__all__ = ["CommandContext", "CommandSpec"]


class CommandContext(Protocol):
    """What a command gets with `@click.pass_obj`: how to speak, and the results to read."""

    @property
    def json(self) -> bool:
        """The user wants one JSON document on stdout."""

    def out(self, line: str = "") -> None:
        """A line of the result. Everything untrusted in it is made safe for a terminal."""

    def note(self, line: str) -> None:
        """Something worth knowing, on stderr, unless `--quiet`."""

    def warn(self, line: str) -> None:
        """Something the user should look at."""

    def emit(self, data: Any, text: Callable[[], None]) -> None:
        """The result: one JSON document under `--json`, else whatever `text` prints."""

    def results(self) -> ResultsReader:
        """Jobs and rollouts on disk."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command.

    Example::

        @hookimpl
        def benchflow_command() -> CommandSpec:
            def build() -> click.Command:
                from benchflow_cmd_publish.cli import publish
                return publish
            return CommandSpec(summary="publish results", build=build)
    """

    summary: str
    build: Callable[[], click.Command]
    """Called only when the command is run or its own help is asked for."""
    check: CheckFn = no_checks
