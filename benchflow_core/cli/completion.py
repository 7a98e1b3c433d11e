"""Shell completion. Names of plugins come from metadata alone, so completing costs no more than `bench --help`."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

__all__ = ["complete", "completion", "completions", "plugin_name", "task_path"]

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def plugin_name(kind: str) -> Completer:
    """For `shell_complete=`: the installed names of a kind, aliases included, and what follows a `wrapper/`."""
    return lambda ctx, param, incomplete: completions(kind, incomplete)


def task_path(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For `shell_complete=`: task folders beside what was typed; without any, the shell completes folders."""
    return completions("task", incomplete)


def completions(what: str, incomplete: str) -> list[CompletionItem]:
    """Names of plugins of a kind, of `plugin`s of every kind, or `task` folders."""
    if what == "task":
        return _task_folders(incomplete)
    from benchflow_core.plugins import registry

    if what == "plugin":
        installed = [plugin for group in registry().index.plugins for plugin in registry().plugins(group)]
        names = {name for plugin in installed for name in (*plugin.names, plugin.distribution.name)}
        return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]
    head, slash, tail = incomplete.rpartition("/")
    known = registry().names(what, aliases=True)
    return [CompletionItem(head + slash + name) for name in known if name.startswith(tail.lower())]


def _task_folders(incomplete: str) -> list[CompletionItem]:
    from pathlib import Path

    from benchflow_core.plugins import Policy, Registry

    prefix, start = incomplete[: incomplete.rfind("/") + 1], incomplete[incomplete.rfind("/") + 1 :]
    adapters = [found.spec for found in Registry(Policy.read(), lambda line, cause: None).all("adapter")]

    def is_task(folder: Path) -> bool:
        return any(adapter.detect(folder) for adapter in adapters)

    try:
        folders = sorted(path for path in Path(prefix or ".").expanduser().iterdir() if path.is_dir())
        tasks = [path.name for path in folders if path.name.startswith(start) and is_task(path)]
    except Exception:
        tasks = []
    return [CompletionItem(prefix + name) for name in tasks] or [CompletionItem(incomplete, type="dir")]


def complete(cli: click.Command, prog: str, instruction: str) -> int:
    """Answers the script that `bench completion` printed. A failure is silent: it would land in the user's prompt."""
    try:
        return shell_complete(cli, {}, prog, f"_{prog.upper()}_COMPLETE", instruction)
    except Exception:
        return 1


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL, for bench and benchflow.

    \b
    bash   eval "$(bench completion bash)"           in ~/.bashrc
    zsh    eval "$(bench completion zsh)"            in ~/.zshrc
    fish   bench completion fish | source            in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    for prog in ("bench", "benchflow"):
        script = kind(ctx.find_root().command, {}, prog, f"_{prog.upper()}_COMPLETE")
        click.echo(script.source_template % script.source_vars())
