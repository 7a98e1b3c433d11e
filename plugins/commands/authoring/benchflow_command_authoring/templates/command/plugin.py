"""The plugin: a command of `bench`, built only when it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchflow_core.contracts import CommandSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


def build() -> click.Command:
    from {{module}}.cli import command

    return command


@hookimpl
def benchflow_command() -> CommandSpec:
    return CommandSpec(summary="list the rollouts of a job with their rewards", build=build)
