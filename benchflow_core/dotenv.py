"""The user's environment: the process's own, with `.env` of the current folder behind it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from benchflow_core.errors import ConfigurationError

__all__ = ["user_env"]

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


def user_env(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables that are set already win over the file. `BENCHFLOW_DOTENV_PATH` names another file; empty: none."""
    env = dict(os.environ if environ is None else environ)
    named = env.get("BENCHFLOW_DOTENV_PATH")
    if named == "":
        return env
    path = Path(named or ".env")
    try:
        text = path.read_text("utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        if named:
            raise ConfigurationError(f"BENCHFLOW_DOTENV_PATH: {path} is not a file.") from None
        return env
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error
    return {**_parse(text, path), **env}


def _parse(text: str, path: Path) -> dict[str, str]:
    values = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConfigurationError(f"{path}, line {number}: expected NAME=value.")
        values[match[1]] = _value(match[2])
    return values


def _value(text: str) -> str:
    """Quotes as a shell reads them, without expansion; a comment may follow an unquoted value."""
    if text[:1] == "'" and (end := text.find("'", 1)) > 0:
        return text[1:end]
    if text[:1] == '"':
        closed = re.match(r'"((?:[^"\\]|\\.)*)"', text)
        if closed:
            return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), closed[1])
    return re.sub(r"\s+#.*$", "", text).strip()
