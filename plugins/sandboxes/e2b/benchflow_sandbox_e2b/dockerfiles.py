"""A Dockerfile as the steps of a template, by the SDK's own reading of it. `COPY --from` is ours."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit.build_folder import BOX
from benchflow_boxkit.package import HOME, PYTHON
from benchflow_boxkit.recipe import Recipe, text_of
from e2b import AsyncTemplate
from e2b.template.dockerfile_parser import DockerfileSyntaxError, parse_dockerfile

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_e2b.copies import PLACE
from benchflow_sandbox_e2b.stages import Lowered, lower, lowered

__all__ = ["identity", "notices", "refuse", "stage_template", "template"]

_NO_PROGRAM: Final = "\nENTRYPOINT []\nCMD []\n"
"""A template's program would run while it is built and be part of every box; in a rollout nothing runs unasked."""
_ENDING: Final = f"USER root\nCOPY {BOX} {HOME}\n"
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
    if request.dockerfile is None:
        return
    text, name = text_of(request), str(request.dockerfile)
    pending: list[int | None] = [None]
    seen: set[int | None] = set()
    while pending:
        if (stage := pending.pop()) not in seen:
            seen.add(stage)
            lowered = lower(text, name, stage)
            _steps(lowered.text, name)
            pending += [copy.origin for copy in lowered.copies if isinstance(copy.origin, int)]


def notices(recipe: Recipe) -> tuple[str, ...]:
    if lowered(recipe).has_workdir:
        return ()
    return (f"{recipe.name}: E2B does not take over an image's own WORKDIR and USER; boxes begin in / as root.",)


def template(lowered: Lowered, name: str, folder: Path) -> Any:
    """With every archive of a `COPY --from` in the folder already."""
    return _built(lowered, _with_caches(lowered), name, folder)


def stage_template(lowered: Lowered, name: str, folder: Path) -> Any:
    """Of a stage that something is copied from: with our Python, which packs it."""
    return _built(lowered, _with_caches(lowered) + _ENDING, name, folder)


def identity(lowered: Lowered, name: str, folder: Path) -> str:
    """Of the steps and of the files they copy from the folder; what comes from other stages is not in it."""
    found: Any = AsyncTemplate(file_context_path=str(folder), file_ignore_patterns=[".benchflow"])
    found = found.from_image(lowered.base)
    for call, args, options in _steps(_with_caches(lowered), name).calls:
        if args[:1] != (BOX,):
            found = getattr(found, call)(*args, **options)
    return AsyncTemplate.to_json(found)


def _built(lowered: Lowered, text: str, name: str, folder: Path) -> Any:
    found: Any = AsyncTemplate(file_context_path=str(folder)).from_image(lowered.base)
    copies = {copy.step: copy for copy in lowered.copies}
    has_python = False
    for call, args, options in _steps(text, name).calls:
        copy = copies.get(args[0]) if call == "run_cmd" else None
        box = call == "copy" and args[0] == BOX
        if (copy or box) and not has_python:
            found, has_python = found.copy(BOX, HOME, user="root", gzip=False), True
        if copy is not None:
            found = found.copy(copy.folder, f"{PLACE}/{copy.line}", user="root", gzip=False)
            found = found.run_cmd(copy.command(PYTHON), user="root")
        elif call == "copy" and not box:  # to compress a Python takes longer than to send it
            found = found.copy(*args, **{**options, "gzip": False})
        elif not box:
            found = getattr(found, call)(*args, **options)
    return found


def _steps(text: str, name: str) -> _Steps:
    steps = _Steps()
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # the SDK prints what it leaves out; that was looked at before
            parse_dockerfile(text + _NO_PROGRAM, steps)
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
