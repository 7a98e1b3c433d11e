"""Commands: a plugin may add `bench NAME`. The entry-point name is the command's; help comes from its metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchflow_core.contracts.common import CheckFn, no_checks

if TYPE_CHECKING:
    import click

__all__ = ["CommandSpec"]


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
