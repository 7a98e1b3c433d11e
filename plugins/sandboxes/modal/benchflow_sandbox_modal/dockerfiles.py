"""A Dockerfile as Modal's SDK can read it, and what of it or of its context does not get through."""

from __future__ import annotations

import json
import re
from typing import Final

import modal
from benchflow_boxkit.context import not_plain
from benchflow_boxkit.recipe import Recipe, text_of
from modal._utils.docker_utils import extract_copy_command_patterns

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.errors import CapabilityMissing

__all__ = ["image_notices", "readable", "refuse"]

_ARRAY: Final = re.compile(r"^(\s*COPY\s+)(\[.*\])\s*$", re.IGNORECASE | re.MULTILINE)
_UNREAD: Final = re.compile(r"^\s*(ADD\s|COPY\s.*\[)", re.IGNORECASE | re.MULTILINE)
_FROM: Final = re.compile(r"^\s*FROM\s", re.IGNORECASE | re.MULTILINE)
_STAGE: Final = "FROM scratch AS benchflow-context\nCOPY . /\n"


def readable(text: str) -> str:
    """The SDK uploads what it finds in plain COPY lines only: arrays are written as such lines, and where that is not
    possible, or something is ADDed, a stage that nothing uses names the whole context."""

    def plain(found: re.Match[str]) -> str:
        try:
            words = [str(word) for word in json.loads(found[2])]
        except ValueError:
            return found[0]
        *sources, target = [
            re.sub(r" (?=.)", "?", word) for word in words
        ]  # one character, which only a blank is likely to be
        if any(re.search(r"[\s\"'\[\]$\\]", word) for word in (*sources, target)) or " " in words[-1]:
            return found[0]
        return found[1] + " ".join((*sources, target))

    text = _ARRAY.sub(plain, text)
    if _UNREAD.search(text) and (first := _FROM.search(text)):
        text = text[: first.start()] + _STAGE + text[first.start() :]
    return text


def refuse(request: ImageRequest) -> None:
    """What the SDK would refuse once a build begins is refused by line while the job is planned."""
    if request.dockerfile is None:
        return
    lines = _ARRAY.sub(lambda found: found[0].partition("[")[0] + ". /", text_of(request)).splitlines()
    for number in range(len(lines), 0, -1):  # the shortest rest that is refused begins with the line
        try:
            extract_copy_command_patterns(lines[number - 1 :])
        except (modal.exception.InvalidError, ValueError) as error:
            raise CapabilityMissing(
                f"{request.dockerfile}, line {number}: Modal cannot build it: {str(error).rstrip('.')}.",
                remedy="Name the files in COPY as they are, or use another sandbox.",
            ) from error


def image_notices(recipe: Recipe) -> tuple[str, ...]:
    """The SDK uploads plain files."""
    said = "Modal uploads plain files; links arrive as copies or not at all, and empty folders not"
    return (f"{recipe.name}: {said}: {lost}",) if (lost := not_plain(recipe.context)) else ()
