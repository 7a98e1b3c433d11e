"""Groups of `bench` to which plugins add commands: `NAME` below `bench`, `GROUP.NAME` below a group."""

from __future__ import annotations

from typing import Any, Final

import click

from benchflow_core.cli.lazy import LazyGroup, with_common_options
from benchflow_core.errors import PluginError
from benchflow_core.plugins import registry
from benchflow_core.plugins.index import COMMAND_GROUP

__all__ = ["PluginGroup"]


class PluginGroup(LazyGroup):
    """A group with commands of its own and commands of plugins, both listed without importing them.

    A place in the table that is no `module:attribute` is the distribution that brings the command: it is listed where
    that is installed, and named to whoever asks for it where it is not.
    """

    def __init__(self, name: str | None = None, *, prefix: str | None = None, **attrs: Any) -> None:
        super().__init__(name, **attrs)
        self.prefix: Final = f"{name}." if prefix is None else prefix

    def reserved(self) -> set[str]:
        """The names that no plugin can take."""
        known = {**self.table, **self.hidden_table}
        return {*self.commands, *(name for name, (place, _) in known.items() if ":" in place)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        found, own = self.from_plugins(), self.reserved()
        listed = [name for name in super().list_commands(ctx) if name in own or name in found]
        return [*listed, *(name for name in found if name not in listed and name not in self.hidden_table)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.reserved():
            return super().get_command(ctx, cmd_name)
        command = _command(ctx, self.prefix + cmd_name)
        known = self.table.get(cmd_name) or self.hidden_table.get(cmd_name)
        if command is None and known and not ctx.resilient_parsing:
            raise _missing(f"{ctx.command_path} {cmd_name}", known[0])
        return command

    def short_help_of(self, ctx: click.Context, name: str) -> str:
        ours = name in self.table or name in self.commands
        return super().short_help_of(ctx, name) if ours else self.from_plugins().get(name, "")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        ours = [name for name in names if name in self.table or name in self.commands]
        others = [name for name in names if name not in ours]
        for title, section in (("Commands", ours), ("Commands from plugins", others)):
            if section:
                with formatter.section(title):
                    formatter.write_dl([(name, self.short_help_of(ctx, name)) for name in section])

    def from_plugins(self) -> dict[str, str]:
        """Name to summary, from metadata alone, of what plugins add to this group."""
        found: dict[str, str] = {}
        for plugin in registry().plugins(COMMAND_GROUP):
            for name in plugin.names:
                parent, _, own = name.rpartition(".")
                if (f"{parent}." if parent else "") == self.prefix and own not in self.reserved():
                    found.setdefault(own, plugin.distribution.summary)
        return found


def _command(ctx: click.Context, name: str) -> click.Command | None:
    """The command of a plugin by its whole name, with the common options; none where nothing goes by it."""
    if not registry().index.find(COMMAND_GROUP, name):
        return None
    try:
        return with_common_options(_build(name))
    except PluginError:
        if ctx.resilient_parsing:
            return None
        raise


def _build(name: str) -> click.Command:
    from benchflow_core.plugins.complaints import told, with_article
    from benchflow_core.plugins.dotted import resolve

    loaded = registry().get("command", name)
    owner = f"{loaded.distribution} {loaded.version}"

    try:
        path = loaded.spec.commands.get(name)
        command = resolve(path, f"command {name!r} of {owner}") if path else loaded.spec.build()
    except PluginError:
        raise
    except Exception as error:
        message = f"Command {name!r} of {owner} cannot be built: {told(error)}."
        raise PluginError(message) from error
    if not isinstance(command, click.Command):
        given = with_article(type(command))
        raise PluginError(f"Command {name!r} of {owner} cannot be used: it is {given}, not a click command.")
    return command


def _missing(command: str, distribution: str) -> PluginError:
    from benchflow_core.plugins.remedies import install_command

    return PluginError(f"{command} comes with {distribution}.", remedy=f"Run: {install_command(distribution)}")
