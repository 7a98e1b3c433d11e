"""Commands that plugins add: `NAME` below `bench`, `GROUP.NAME` below one of its groups."""

from __future__ import annotations

import click

from benchflow_core.cli.lazy import with_common_options
from benchflow_core.errors import PluginError
from benchflow_core.plugins import registry
from benchflow_core.plugins.index import COMMAND_GROUP

__all__ = ["plugin_command", "plugin_commands"]


def plugin_commands(group: str) -> dict[str, str]:
    """Name to summary, from metadata alone, of the commands below a group; `""` is `bench` itself."""
    found: dict[str, str] = {}
    for plugin in registry().plugins(COMMAND_GROUP):
        for name in (plugin.name, *(alias for alias in plugin.aliases if "." in alias)):
            parent, _, own = name.rpartition(".")
            if parent == group:
                found.setdefault(own, plugin.distribution.summary)
    return found


def plugin_command(ctx: click.Context, name: str) -> click.Command | None:
    """The command of a plugin by its whole name, with the common options; none where nothing goes by it."""
    if not registry().index.find(COMMAND_GROUP, name):
        return None
    try:
        return with_common_options(_built(name))
    except PluginError:
        if ctx.resilient_parsing:
            return None
        raise


def _built(name: str) -> click.Command:
    loaded = registry().get("command", name)
    owner = f"{loaded.distribution} {loaded.version}"
    try:
        command = loaded.spec.build()
    except Exception as error:
        from benchflow_core.plugins.complaints import told

        message = f"Command {name!r} of {owner} cannot be built: {told(error)}."
        raise PluginError(message) from error
    if not isinstance(command, click.Command):
        given = type(command).__name__
        raise PluginError(f"Command {name!r} of {owner} cannot be used: build returned a {given}, not a click command.")
    return command
