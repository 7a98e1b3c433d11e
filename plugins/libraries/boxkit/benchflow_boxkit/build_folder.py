"""Add our own folder to a build context and keep it out of the task's COPY.

The supervisor and its Python come first in the last stage: below the task's own steps they are one layer, which a
builder keeps for all tasks on the same image.

A builder has one context. What a COPY of everything takes along is removed by the next step, so that no command of the
task ever sees it; once more at the end, as root. The folder is three deep: a pattern such as `*/*` takes what is in the
folders that it finds, and what it takes then still has our name.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from typing import Final

from benchflow_boxkit.dockerfile import Dockerfile, Instruction, lines_of, parse
from benchflow_boxkit.package import CLEAN, HOME

__all__ = ["BOX", "OWN", "guarded", "takes_along"]

_NAME: Final = ".benchflow"
OWN: Final = f"{_NAME}/{_NAME}/{_NAME}"
BOX: Final = f"{OWN}/box"
"""The supervisor with its Python."""
_OURS: Final = f"COPY {BOX} {HOME}"
_CLEAN: Final = f"RUN {json.dumps(CLEAN)}"


def takes_along(source: str) -> bool:
    """Return whether a task's Dockerfile may take our folder along. What a variable stands for is not known here."""
    return any(_copies_all(found) or _mounts(found) for found in parse(source).instructions)


def guarded(source: str) -> tuple[str, tuple[int, ...]]:
    """Add our Python, and steps that remove what was taken along. Also return the task's own number of each line."""
    lines = lines_of(source)
    at = 0
    text: list[str] = []
    numbers: list[int] = []
    for end, extra in _extra(parse(source)):
        text += [*lines[at:end], *extra]
        numbers += [*range(at + 1, end + 1), *[end] * len(extra)]
        at = end
    text += lines[at:]
    numbers += range(at + 1, len(lines) + 1)
    return "\n".join(text) + "\n", tuple(numbers)


def _extra(source: Dockerfile) -> Iterator[tuple[int, list[str]]]:
    """Yield (line count, text to insert after it) pairs."""
    users: dict[str, str] = {}
    for stage in source.stages:
        user = users.get(stage.base.lower(), "")
        if ready := stage is source.stages[-1]:
            yield stage.head.end, [_OURS]
        for found in stage.instructions:
            if found.name == "USER":
                user = found.text
            elif _copies_all(found):
                if not ready:
                    yield found.first, [_OURS]
                ready = True
                yield found.end, ["USER root", _CLEAN, f"USER {user}"] if user else [_CLEAN]
        users[stage.name] = user


def _copies_all(found: Instruction) -> bool:
    if found.name not in ("COPY", "ADD") or "from" in dict(found.flags):
        return False
    sources = [word for word in found.words[:-1] if not word.startswith("<<")]
    return any(set(word) & set("*?[$") or posixpath.normpath(f"/{word.strip(chr(39))}") == "/" for word in sources)


def _mounts(found: Instruction) -> bool:
    return found.name == "RUN" and "mount" in dict(found.flags)
