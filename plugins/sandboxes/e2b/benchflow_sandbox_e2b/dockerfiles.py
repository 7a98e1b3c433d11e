"""A Dockerfile as the steps of a template, by the SDK's own reading of it."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit.recipe import Recipe, text_of
from e2b import AsyncTemplate
from e2b.template.dockerfile_parser import DockerfileSyntaxError, parse_dockerfile

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_e2b.stages import Lowered, lower

__all__ = ["notices", "refuse", "template"]

_NO_PROGRAM: Final = "\nENTRYPOINT []\nCMD []\n"
"""A template's program would run while it is built and be part of every box; in a rollout nothing runs unasked."""
_REMEDY: Final = "Name a finished image in the task (docker_image), or use another sandbox."


class _Steps:
    """What the SDK's reader calls, kept until the base image is known."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def keep(*args: Any, **options: Any) -> _Steps:
            self.calls.append((name, args, options))
            return self

        return keep


def refuse(request: ImageRequest) -> None:
    """What E2B cannot do is an error that names its line: nothing is left out in silence, and nothing has started."""
    if request.dockerfile is not None:
        _steps(lower(text_of(request), str(request.dockerfile)), str(request.dockerfile))


def notices(recipe: Recipe) -> tuple[str, ...]:
    if lower(recipe.text, recipe.name).has_workdir:
        return ()
    return (f"{recipe.name}: E2B does not take over an image's own WORKDIR and USER; boxes begin in / as root.",)


def template(recipe: Recipe, folder: Path) -> Any:
    lowered = lower(recipe.text, recipe.name)
    steps = _steps(lowered, recipe.name, _with_caches(lowered))
    found: Any = AsyncTemplate(file_context_path=str(folder)).from_image(lowered.base)
    for name, args, options in steps.calls:
        if name == "copy":  # to compress a Python takes longer than to send it
            options = {**options, "gzip": False}
        found = getattr(found, name)(*args, **options)
    return found


def _steps(lowered: Lowered, name: str, text: str | None = None) -> _Steps:
    steps = _Steps()
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # the SDK prints what it leaves out; that was looked at before
            parse_dockerfile((lowered.text if text is None else text) + _NO_PROGRAM, steps)
    except (DockerfileSyntaxError, ValueError) as error:
        told = str(error).rstrip(".")
        raise CapabilityMissing(f"{name}: E2B cannot build this Dockerfile: {told}.", remedy=_REMEDY) from error
    return steps


def _with_caches(lowered: Lowered) -> str:
    """A cache may always be empty, but it is there: the folder is made, and what the command leaves in it stays."""
    lines: list[str] = []
    for number, line in enumerate(lowered.text.splitlines(), start=1):
        lines += [f'RUN mkdir -p "{folder}"' for folder in lowered.caches.get(number, ())]
        lines.append(line)
    return "\n".join(lines) + "\n"
