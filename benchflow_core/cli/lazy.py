"""Click groups whose children are imported only when they are run, and options that work before and after a command."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["Lazy", "LazyGroup", "common_options", "with_common_options"]

Lazy = tuple[str, str]
"""Where a command lives (`"package.module:attribute"`) and its line in the parent's help."""


class LazyGroup(click.Group):
    """A group with a table of children. Its help costs no import: the short help stands in the table.

    `hidden` children work and are not listed: older spellings.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        table: Mapping[str, Lazy] | None = None,
        hidden: Mapping[str, Lazy] | None = None,
        **attrs: Any,
    ) -> None:
        super().__init__(name, **attrs)
        self.table = table or {}
        self.hidden_table = hidden or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *self.table]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name) or self.hidden_table.get(cmd_name)
        command = _import(entry[0]) if entry else super().get_command(ctx, cmd_name)
        return with_common_options(command) if command else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            raise click.UsageError(self.unknown(ctx, args[0]), ctx)
        return args[0] if command else None, command, args[1:]

    def unknown(self, ctx: click.Context, name: str) -> str:
        """The message for a command that does not exist."""
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), self.list_commands(ctx), n=2)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        return f"No such command '{name}'.{hint}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self.short_help_of(ctx, name)) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Without importing a child, as click would do to leave out hidden ones."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.short_help_of(ctx, name)) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def short_help_of(self, ctx: click.Context, name: str) -> str:
        """From the table, without importing the child."""
        if name in self.table:
            return self.table[name][1]
        return self.commands[name].get_short_help_str(limit=80)


def _import(path: str) -> click.Command:
    module, _, attribute = path.partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command), path
    return command


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and (ui := ctx.find_object(Ui)):
        ui.json = True


def _set_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and (ui := ctx.find_object(Ui)):
        ui.quiet = True


def _add_verbose(ctx: click.Context, _: click.Parameter, value: int) -> None:
    if value and (ui := ctx.find_object(Ui)):
        ui.verbose += value


def common_options() -> list[click.Option]:
    """`--json`, `-v` and `--quiet`: written to the `Ui`, never passed to a command."""
    return [
        click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_set_json, help="Print the result as JSON."
        ),
        click.Option(
            ["-v", "--verbose"], count=True, expose_value=False, callback=_add_verbose, help="Say more; -vv for most."
        ),
        click.Option(["--quiet"], is_flag=True, expose_value=False, callback=_set_quiet, help="Say only what matters."),
    ]


def with_common_options(command: click.Command) -> click.Command:
    """Adds the common options to a command and to all below it, where it has no option of that spelling itself."""
    taken = {spelling for param in command.params for spelling in param.opts}
    command.params.extend(option for option in common_options() if taken.isdisjoint(option.opts))
    if isinstance(command, click.Group):
        for child in command.commands.values():
            with_common_options(child)
    return command
