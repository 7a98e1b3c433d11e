"""Folders that tests put on a search path, such as PATH, in shell or in Python, as far as their text tells."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["HERE", "put_on", "stood_in"]

HERE: Final = "."
"""An empty entry of a search path is the folder in which a program is called."""
_ELSEWHERE: Final = "/nowhere"
_SETS = re.compile(r"(?:^|[\s;&|(])(?:export\s+)?(\w+)=[\"']?([^\s\"';&|$`]*)[\"']?(?=[\s;&|]|$)", re.MULTILINE)
_GIVEN = re.compile(r"\$\{\w+:\+[^}]*\}+|\$\(pwd\)|\$\{?PWD\}?|\{?os\.getcwd\(\)\}?|\$\([^)]*\)|`[^`]*`")
_VARIABLE = re.compile(r"\$\{?(\w+)(?::-[^}]*)?\}?|\{?os\.(?:environ|getenv)[\[.(][^}]*?[\"'](\w+)[\"'][^}]*\}?")
_STANDS = re.compile(r"(?:\b(?:cd|pushd)\s+|\bcwd=|\bchdir\()[\"']?(/[^\s\"';&|)]+)")


def put_on(variable: str, text: str) -> tuple[str, ...]:
    """`~` is the home of whoever runs the tests."""
    known = {found[1]: found[2] for found in _SETS.finditer(text)} | {"HOME": "~", "PATH": _ELSEWHERE}
    known.pop("LD_LIBRARY_PATH", None)
    folders: dict[str, None] = {}
    value = r"((?:\"[^\"\n]*\"|'[^'\n]*'|\$\([^)\n]*\)|[^\s;&|\"'])+)"
    for found in re.finditer(rf"\b{variable}={value}|\b{variable}[\"']\]?\s*[:=]\s*f?([\"'])(.*?)\2", text):
        words = re.sub(r"[\"']", "", found[1]) if found[1] else found[3]
        if found[3] is not None:
            words = words.removesuffix(":")  # more is added to the string
        words = _VARIABLE.sub(lambda m: known.get(m[1] or m[2], ""), _GIVEN.sub(_instead, words))
        for entry in words.split(":"):
            place = entry.rstrip("/") or ("/" if entry else HERE)
            folders[place if place.startswith(("/", "~/", HERE)) else f"{HERE}/{place}"] = None
    return tuple(folder for folder in folders if folder != "/" and _ELSEWHERE not in folder)


def _instead(found: re.Match[str]) -> str:
    if ":+" in found[0]:
        return ""
    return HERE if "wd" in found[0].lower() else _ELSEWHERE


def stood_in(text: str) -> tuple[str, ...]:
    """Folders in which the tests stand when they call something."""
    return tuple(dict.fromkeys(found[1].rstrip("/") for found in _STANDS.finditer(text)))
