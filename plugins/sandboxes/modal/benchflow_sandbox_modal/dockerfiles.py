"""A Dockerfile as Modal's SDK can read it, and what of it or of its context does not get through."""

from __future__ import annotations

import re
from typing import Final

import modal
from benchflow_boxkit.context import not_plain
from benchflow_boxkit.dockerfile import Instruction, lines_of, parse, rewritten
from benchflow_boxkit.recipe import Recipe, text_of
from modal._utils.docker_utils import extract_copy_command_patterns

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.errors import CapabilityMissing

__all__ = ["image_notices", "readable", "refuse"]

_STAGE: Final = "FROM scratch AS benchflow-context\nCOPY . /\n"


def readable(text: str) -> str:
    """Write every COPY in the one form that the SDK reads: it uploads only what plain COPY lines name.

    Arrays are written as such lines. Where that is not possible, or something is ADDed, a stage that nothing uses
    names the whole context.
    """
    new: dict[Instruction, str] = {}
    unread = False
    source = parse(text)
    for one in source.instructions:
        array = one.array() if one.name == "COPY" and not one.flags else None
        if array is not None and (said := _plain(array)):
            new[one] = f"COPY {said}"
        unread = unread or one.name == "ADD" or (one.name == "COPY" and "[" in one.text and one not in new)
    lines = lines_of(rewritten(text, new))
    if unread:
        lines.insert(source.stages[0].head.first, _STAGE.rstrip("\n"))
    return "\n".join(lines) + "\n"


def _plain(array: list[str]) -> str:
    """Return the words of an array as a shell would take them; nothing where they cannot be written so."""
    *sources, target = array or [""]
    # One character, which only a blank is likely to be.
    words = [re.sub(r" (?=.)", "?", word) for word in sources] + [target]
    return "" if any(re.search(r"[\s\"'\[\]$\\]", word) for word in words) else " ".join(words)


def refuse(request: ImageRequest) -> None:
    """Refuse by line, while the job is planned, what the SDK would refuse once a build begins."""
    if request.dockerfile is None:
        return
    text = text_of(request)
    arrays = [one for one in parse(text).instructions if one.name == "COPY" and one.text.startswith("[")]
    lines = lines_of(rewritten(text, dict.fromkeys(arrays, "COPY . /")))
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
