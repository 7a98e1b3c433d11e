"""A task's build context without a trace of the skills that it brings."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchflow_boxkit.dockerfile import Instruction, parse, rewritten

from benchflow_core.contracts import ImageRequest, Task
from benchflow_core.errors import TaskError
from benchflow_feature_standard.skills.folders import task_skills

__all__ = ["without_skills"]

_BUNDLED: Final = "skills"
Places = Sequence[tuple[Path, Path]]
"""Where a source of COPY may be meant to lie: before and after."""


def without_skills(request: ImageRequest, task: Task, target: Path) -> ImageRequest:
    """Return the request with a copy of its context that has no skills, and no instruction that copies them."""
    context = request.context
    if context is None:
        return request
    if not target.exists():
        staged = target.with_name(f".{target.name}")
        shutil.rmtree(staged, ignore_errors=True)
        shutil.copytree(context, staged, symlinks=True, ignore=_all_but(target.parent))
        _remove(staged, [folder.relative_to(context) for folder in task_skills(task, context)])
        for file in staged.rglob("*Dockerfile*"):
            if file.is_file() and not file.is_symlink():
                # Built from the whole context, or, as a service of a compose file, from its own folder.
                places = [(context, staged), (context / file.parent.relative_to(staged), file.parent)]
                text = file.read_text("utf-8", "surrogateescape")
                file.write_text(_without_copies(text, places), "utf-8", "surrogateescape")
        staged.rename(target)

    def moved(path: Path | None) -> Path | None:
        inside = path is not None and path.resolve().is_relative_to(context.resolve())
        return target / path.resolve().relative_to(context.resolve()) if path is not None and inside else path

    return replace(request, context=target, dockerfile=moved(request.dockerfile), compose=moved(request.compose))


def _all_but(folder: Path) -> Callable[[str, list[str]], set[str]]:
    """Tell `shutil.copytree` to leave out a folder that may lie in the context and would be copied into itself."""
    own = folder.resolve()
    return lambda place, names: {own.name} & set(names) if Path(place).resolve() == own.parent else set()


def _remove(root: Path, folders: list[Path]) -> None:
    """Remove the skills, and folders that held nothing else."""
    shutil.rmtree(root / _BUNDLED, ignore_errors=True)
    (root / "SKILL.md").unlink(missing_ok=True)
    for folder in folders:
        shutil.rmtree(root / folder, ignore_errors=True)
        for parent in list(folder.parents)[:-1]:
            if (root / parent).is_dir() and not any((root / parent).iterdir()):
                (root / parent).rmdir()


def _without_copies(text: str, places: Places) -> str:
    """Return a Dockerfile without COPY and ADD of what is gone; one with other sources keeps those."""
    try:
        instructions = parse(text).instructions
    except TaskError:  # its name says Dockerfile, and it is none
        return text
    new: dict[Instruction, str] = {}
    for one in instructions:
        if one.name in ("COPY", "ADD") and not one.heredocs and "from" not in dict(one.flags):
            *sources, target = one.words or [""]
            kept = [source for source in sources if not _gone(source, places)]
            if len(kept) < len(sources):
                flags = [f"--{name}={value}" if value else f"--{name}" for name, value in one.flags]
                new[one] = " ".join([one.name, *flags, *kept, target]) if kept else ""
    return rewritten(text, new) if new else text


def _gone(source: str, places: Places) -> bool:
    """Tell whether a source was in the context and is not any more."""
    pattern = source.removeprefix("./").strip("/")
    if pattern in ("", ".") or "://" in source or ".." in Path(pattern).parts:
        return False
    was = any(True for before, _ in places for _ in before.glob(pattern))
    return was and not any(True for _, after in places for _ in after.glob(pattern))
