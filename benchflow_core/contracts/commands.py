"""Commands: a plugin may add `bench NAME`. The entry-point name is the command's; help comes from its metadata.

An entry point called `eval.NAME` is `bench eval NAME`, and so for every group of `bench`. Several entry points with the
same module are one command under several names, or those that the spec's `commands` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from benchflow_core.contracts.common import CheckFn, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from benchflow_core.contracts.core import Core
    from benchflow_core.contracts.results import ResultsReader

__all__ = ["CommandContext", "CommandSpec"]


class CommandContext(Protocol):
    """What a command gets with `@click.pass_obj`: how to speak, the results to read, and what the core can do."""

    @property
    def json(self) -> bool:
        """The user wants one JSON document on stdout."""

    @property
    def quiet(self) -> bool:
        """Only what matters is said."""

    @property
    def verbose(self) -> int:
        """How often `-v` was given."""

    def out(self, line: str = "") -> None:
        """A line of the result. Everything untrusted in it is made safe for a terminal."""

    def note(self, line: str) -> None:
        """Something worth knowing, on stderr, unless `--quiet`."""

    def warn(self, line: str) -> None:
        """Something the user should look at."""

    def error(self, line: str) -> None:
        """Why the command ends."""

    def style(self, text: str, style: str) -> str:
        """`bold`, `dim`, `red`, `green` or `yellow`, where colour is wanted."""

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Aligned columns."""

    def emit(self, data: Any, text: Callable[[], None]) -> None:
        """The result: one JSON document under `--json`, else whatever `text` prints."""

    def results(self) -> ResultsReader:
        """Jobs and rollouts on disk."""

    def core(self) -> Core:
        """Plugins, tasks and rollouts."""

    def complete(self, what: str, incomplete: str) -> list[CompletionItem]:
        """For `shell_complete=`: names of plugins of a kind, of every kind (`plugin`), or task folders (`task`)."""


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
    build: Callable[[], click.Command] | None = None
    """Called only when the command is run or its own help is asked for."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """For a module with several commands: entry-point name to `"package.module:attribute"`."""
    results: str = ""
    """Where the `ResultsReader` is that this package gives to other commands, as `"package.module:Class"`; made with a
    `ResultFiles`."""
    check: CheckFn = no_checks
