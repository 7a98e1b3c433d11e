"""The user's environment: the process's own, with `.env` of the current folder behind it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from benchflow_core.errors import ConfigurationError

__all__ = ["user_env"]


def user_env(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables; those that are set already win over the file.

    `BENCHFLOW_DOTENV_PATH` names another file; empty: none.
    """
    env = dict(os.environ if environ is None else environ)
    named = env.get("BENCHFLOW_DOTENV_PATH")
    path = Path(named or ".env")
    if named == "" or not (named or path.is_file()):
        return env
    if not path.is_file():
        raise ConfigurationError(f"BENCHFLOW_DOTENV_PATH: {path} is not a file.")
    return {**_read(path), **env}


def _read(path: Path) -> dict[str, str]:
    from dotenv.parser import parse_stream

    try:
        with path.open(encoding="utf-8") as file:
            lines = list(parse_stream(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error
    for line in lines:
        if line.error or (line.key is not None and line.value is None):
            raise ConfigurationError(f"{path}, line {line.original.line}: expected NAME=value.")
    return {line.key: line.value for line in lines if line.key is not None and line.value is not None}
