"""Write a new task, or a task in another format. The files come from adapters; this puts them in place."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchflow_core.contracts import Migration, Scaffold, ScaffoldRequest
from benchflow_core.contracts.core import Core, LoadedPlugin
from benchflow_core.errors import ConfigurationError, UsageError

__all__ = ["init_task", "migrate_task"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def init_task(
    core: Core, name: str, parent: Path, *, format: str | None = None, solution: bool = True, pytest: bool = True
) -> tuple[Path, Scaffold]:
    """Make the folder `parent/name`, complete or not at all."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name}' cannot be the name of a task.", remedy="Use letters, digits, '.', '_' and '-'.")
    target = parent / name
    if target.exists() or target.is_symlink():
        raise ConfigurationError(f"{target} exists already.", remedy="Choose another name, or remove it.")
    adapter = _writer(core, "scaffold", format, order="scaffold_rank")
    scaffold: Scaffold = adapter.spec.scaffold(ScaffoldRequest(name, solution, pytest))
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=parent) as staging:
            made = Path(staging) / name
            made.mkdir()
            _write(scaffold.files, made)
            made.rename(target)
    except OSError as error:
        raise _cannot_write(error, target) from error
    return target, scaffold


def migrate_task(
    core: Core, path: Path, *, to: str | None = None, overwrite: bool = False, remove_superseded: bool = False
) -> tuple[str, Migration]:
    """Add the files of the other format; those they replace stay unless they are to be removed."""
    source = core.adapter_of(path)
    target = _writer(core, "migrate", to, besides=source.name)
    if target.name == source.name:
        raise ConfigurationError(f"{path} is a {source.name} task already.")
    migration: Migration = target.spec.migrate(path)
    there = [name for name in migration.files if (path / name).exists()]
    if there and not overwrite:
        raise ConfigurationError(f"{path / there[0]} exists already.", remedy="Add --overwrite to replace it.")
    try:
        _write(migration.files, path)
        for name in migration.superseded if remove_superseded else ():
            (path / name).unlink()
    except OSError as error:
        raise _cannot_write(error, path) from error
    return target.name, migration


def _writer(
    core: Core, ability: str, name: str | None, besides: str | None = None, order: str = "rank"
) -> LoadedPlugin:
    """Return the adapter that was named, or the first in `order` of those that have the ability."""
    able = [a for a in core.plugins("adapter") if getattr(a.spec, ability) is not None]
    able.sort(key=lambda adapter: (getattr(adapter.spec, order), adapter.name))
    if name is not None:
        chosen = core.plugin("adapter", name)
        if getattr(chosen.spec, ability) is None:
            names = ", ".join(a.name for a in able) or "none"
            raise UsageError(f"format '{name}' cannot be written by {ability}.", remedy=f"These can: {names}.")
        return chosen
    for adapter in able:
        if adapter.name != besides:
            return adapter
    already = f"this is a {besides} task already, and " if any(a.name == besides for a in able) else ""
    what = f"{already}no other installed format offers to {ability}."
    raise ConfigurationError(what, remedy="Run: bench plugins list")


def _write(files: Mapping[str, str], root: Path) -> None:
    for relative, text in files.items():
        file = root / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            staged.write_text(text, encoding="utf-8", newline="\n")
            staged.chmod(0o755 if text.startswith("#!") else 0o644)
            staged.replace(file)
        finally:
            staged.unlink(missing_ok=True)


def _cannot_write(error: OSError, target: Path) -> ConfigurationError:
    name = os.fsdecode(error.filename) if error.filename else target
    return ConfigurationError(f"{name} cannot be written: {error.strerror}.")
