"""What a shell may put in place of an incomplete word of these commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

__all__ = ["one_of"]


def one_of(what: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """For `shell_complete=`: names of a kind of plugin, of any `plugin`, or `task` folders."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: list[CompletionItem] = ctx.obj.complete(what, incomplete)
        return found

    return complete
