"""What a task's Dockerfile says of a service: whether it is meant, and where its database lies. Read, never run."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

__all__ = ["base_names", "places_of", "seeded_in"]

IMAGES: Final = frozenset({"claws-base", "smolclaws-base"})
"""Images that hold every `claw-*` program, by the last part of their name."""

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?[^}]*\}|(\w+))")
_PAIR: Final = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S*)")


def seeded_in(folder: Path, name: str) -> tuple[str, ...] | None:
    """Return the paths at which a build context's Dockerfile lays `NAME.db`; none where this service is not meant.

    It is where the Dockerfile names its program, or builds on an image of the claws with a seed for it beside.
    """
    try:
        text = (folder / "Dockerfile").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    has_seed = any((folder / f"{name}{suffix}").is_file() for suffix in (".db", ".scenario.json"))
    named = re.compile(rf"(?<![\w.-])claw-{re.escape(name)}(?![\w-])")
    is_named = any(named.search(rest) for _, rest in instructions(text))
    if not is_named and not (has_seed and base_names(text) & IMAGES):
        return None
    return tuple(places_of(text, f"{name}.db"))


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction in capitals with its arguments on one line; comments are left out."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\[ \t]*\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield word.upper(), rest.strip()


def base_names(text: str) -> set[str]:
    """Return the images that are built upon, without registry, owner, tag and digest."""
    found = set()
    for word, rest in instructions(text):
        named = [part for part in rest.split() if not part.startswith("--")]
        if word == "FROM" and named:
            found.add(named[0].partition("@")[0].rpartition("/")[2].partition(":")[0])
    return found


def places_of(text: str, name: str) -> list[str]:
    """Return where `COPY` and `ADD` of the last stage lay the file `name` of the build context."""
    found: list[str] = []
    variables: dict[str, str] = {}
    workdir = "/"
    for word, rest in instructions(text):
        if word == "FROM":
            found, workdir = [], "/"
        elif word in ("ENV", "ARG"):
            variables |= _assignments(_expand(rest, variables))
        elif word == "WORKDIR":
            workdir = posixpath.join(workdir, _expand(rest.strip("\"'"), variables))
        elif word in ("COPY", "ADD") and (target := _target(_expand(rest, variables), name)):
            found.append(posixpath.normpath(posixpath.join(workdir, target)))
    return list(dict.fromkeys(found))


def _assignments(rest: str) -> dict[str, str]:
    """Read `NAME=value NAME="other"`, and `NAME value` as `ENV` had it once."""
    if "=" not in rest:
        name, _, value = rest.partition(" ")
        return {name: value}
    return {name: value.strip("\"'") for name, value in _PAIR.findall(rest)}


def _expand(text: str, variables: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda said: variables.get(said[1] or said[3], said[2] or ""), text)


def _target(arguments: str, name: str) -> str | None:
    """Return the path that the file `name` gets from one `COPY`; none where it does not take part."""
    words = arguments.split()
    flags = [word for word in words if word.startswith("--")]
    if any(flag.startswith("--from=") for flag in flags):
        return None
    words = words[len(flags) :]
    if words and words[0].startswith("["):
        try:
            words = [str(word) for word in json.loads(" ".join(words))]
        except ValueError:
            return None
    *sources, target = words or [""]
    given = [posixpath.normpath(source).lstrip("/") or "." for source in sources]
    if not any(source == "." or fnmatchcase(name, source) for source in given):
        return None
    # Whether a target without a slash is a folder, only the image knows: one that ends like the file is a file.
    is_file = not target.endswith("/") and posixpath.splitext(target)[1] == posixpath.splitext(name)[1]
    return target if is_file and len(given) == 1 and given != ["."] else posixpath.join(target, name)
