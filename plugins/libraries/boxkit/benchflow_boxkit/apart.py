"""Our own folder in the context of a build: what every image gets, kept out of what a task copies from there.

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

from benchflow_boxkit.instructions import Instruction, instructions
from benchflow_boxkit.package import CLEAN, HOME

__all__ = ["BOX", "OWN", "guarded", "takes_along"]

_NAME: Final = ".benchflow"
OWN: Final = f"{_NAME}/{_NAME}/{_NAME}"
BOX: Final = f"{OWN}/box"
"""The supervisor with its Python."""
_OURS: Final = f"COPY {BOX} {HOME}"
_CLEAN: Final = f"RUN {json.dumps(CLEAN)}"


def takes_along(source: str) -> bool:
    """May a task's Dockerfile take our folder along? What a variable stands for is not known here."""
    return any(_copies_all(found) or _mounts(found) for found in instructions(source))


def guarded(source: str) -> tuple[str, tuple[int, ...]]:
    """The Dockerfile with our Python and with steps that remove what was taken along; the task's own number of each of
    its lines."""
    lines = source.splitlines()
    at = 0
    text: list[str] = []
    numbers: list[int] = []
    for end, extra in _extra(source):
        text += [*lines[at:end], *extra]
        numbers += [*range(at + 1, end + 1), *[end] * len(extra)]
        at = end
    text += lines[at:]
    numbers += range(at + 1, len(lines) + 1)
    return "\n".join(text) + "\n", tuple(numbers)


def _extra(source: str) -> Iterator[tuple[int, list[str]]]:
    """After how many lines of it, what."""
    users: dict[str, str] = {}
    stage, user, ready = "", "", False
    all_ = list(instructions(source))
    last = [found for found in all_ if found.word == "FROM"][-1:]
    for found in all_:
        if found.word == "FROM":
            words = [word for word in found.words if not word.startswith("--")]
            user = users.get(words[0].lower(), "") if words else ""
            stage = words[2].lower() if len(words) == 3 else ""
            if ready := [found] == last:
                yield found.end, [_OURS]
        elif found.word == "USER":
            user = found.text.split(None, 1)[-1]
        elif _copies_all(found):
            if not ready:
                yield found.first, [_OURS]
            ready = True
            yield found.end, ["USER root", _CLEAN, f"USER {user}"] if user else [_CLEAN]
        users[stage] = user


def _copies_all(found: Instruction) -> bool:
    if found.word not in ("COPY", "ADD") or any(word.startswith("--from=") for word in found.words):
        return False
    sources = [word for word in found.words[:-1] if not word.startswith(("--", "<<"))]
    return any(set(word) & set("*?[$") or posixpath.normpath(f"/{word.strip(chr(39))}") == "/" for word in sources)


def _mounts(found: Instruction) -> bool:
    return found.word == "RUN" and any(word.startswith("--mount=") for word in found.words)
