"""A Dockerfile where namespaces are forbidden: files and variables, nothing that runs."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchflow_boxkit.dockerfile import Dockerfile, Instruction, Stage

from benchflow_core.errors import CapabilityMissing

__all__ = ["places"]

_ROOT = ("root", "0", "0:0", "root:root")


def places(recipe: Dockerfile) -> list[str]:
    """Folders that the instructions make or fill, as far as no variable is in them. Refuses by line what needs a root
    of its own: a command would run on this machine's files, as this machine's user."""
    found: list[str] = []
    for stage in recipe.stages:
        for line in stage.instructions:
            if line.name == "RUN" or (line.name == "USER" and line.text.strip() not in _ROOT):
                raise CapabilityMissing(
                    f"{recipe.path}:{line.line}: {line.name} is not possible where namespaces are forbidden (stage 3).",
                    remedy="Allow user namespaces to this user, or use a sandbox with the capability image-build.",
                )
        found += _folders(stage)
    return found


def _folders(stage: Stage) -> Iterator[str]:
    workdir = "/"
    for line in stage.instructions:
        if line.name == "WORKDIR":
            workdir = os.path.join(workdir, line.text.strip().strip("\"'"))
            yield workdir
        elif line.name in ("COPY", "ADD", "VOLUME"):
            for path in _targets(line):
                path = os.path.join(workdir, path)
                folder = path if path.endswith("/") or line.name == "VOLUME" else os.path.dirname(path)
                yield path if folder == "/" else folder


def _targets(line: Instruction) -> list[str]:
    words = line.array() or line.text.split()
    return words if line.name == "VOLUME" else words[-1:]
