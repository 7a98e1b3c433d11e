"""The plugin: `bench view` and `bench eval view`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchflow_core.contracts import CommandSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


def build() -> click.Command:
    from benchflow_command_view.cli import view

    return view


@hookimpl
def benchflow_command() -> CommandSpec:
    return CommandSpec(summary="look at jobs, rollouts and agent sessions in a browser", build=build)
