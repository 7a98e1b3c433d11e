"""`bench plugins new KIND NAME`: writes a package, and says what to do with it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from benchflow_command_authoring.render import render, variables
from benchflow_core.errors import UsageError
from benchflow_core.hookspecs import GROUPS

if TYPE_CHECKING:
    from benchflow_core.contracts import CommandContext

__all__ = ["new"]

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def _complete_kind(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [kind for kind in GROUPS if kind.startswith(incomplete)]


@click.command("new")
@click.argument("kind", shell_complete=_complete_kind)
@click.argument("name")
@click.option("--dir", "parent", metavar="D", type=click.Path(path_type=Path), default=Path(), help="Where to put it.")
@click.option("--author", metavar="TEXT", default="", help="Your name; without it, your login's.")
@click.pass_obj
def new(ui: CommandContext, kind: str, name: str, parent: Path, author: str) -> None:
    """Create a plugin package that builds and passes its tests.

    KIND is one of agent, sandbox, adapter, environment, service, verifier, gateway, driver, source, executor, exporter,
    command, feature, observer. NAME is what users will type.

    \b
      bench plugins new sandbox my-cloud
      bench plugins new agent my-agent --dir ~/src --author "Ada Lovelace"
    """
    check_names(kind, name)
    if not author.isprintable():
        raise UsageError("--author holds characters that cannot be printed.", remedy="Write the name on one line.")
    folder, files = create(kind, name, parent, author or _login())
    ui.emit({"folder": str(folder), "files": files}, lambda: _say(ui, name, folder, files))


def check_names(kind: str, name: str) -> None:
    """Raise `UsageError` for a kind that does not exist and a name that cannot be one."""
    if kind not in GROUPS:
        raise UsageError(f"Unknown kind {kind!r}.", remedy=f"One of: {', '.join(GROUPS)}.")
    if not _NAME.fullmatch(name) or len(name) > 40:
        remedy = "Use up to 40 lower-case letters and digits, words joined by single dashes."
        raise UsageError(f"{name!r} cannot be the name of a plugin.", remedy=remedy)


def create(kind: str, name: str, parent: Path, author: str) -> tuple[Path, list[str]]:
    """Write the package as `<parent>/<distribution>`; refuses to touch a folder that is there already."""
    from importlib.metadata import version

    values = variables(kind, name, author, version("benchflow-core"))
    folder = parent.expanduser() / values["dist"]
    files = render(kind, values)
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(f"{folder} exists already.", remedy="Choose another name, or another --dir.") from error
    except OSError as error:
        raise UsageError(f"{folder} cannot be created: {error.strerror}.", remedy="Choose another --dir.") from error
    try:
        for relative, text in files.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, sorted(files)


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "the authors"


def _say(ui: CommandContext, name: str, folder: Path, files: list[str]) -> None:
    ui.out(f"Created {folder} ({len(files)} files).")
    ui.note("Next:")
    for line in (
        f"cd {shlex.quote(str(folder))}",
        "pip install -e '.[test]'",
        f"bench plugins show {name}",
        "pytest",
    ):
        ui.note(f"  {line}")
