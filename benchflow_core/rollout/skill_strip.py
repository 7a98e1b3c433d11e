"""The skills a task brings, and its build context without a trace of them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.contracts.tasks import Task

__all__ = ["has_skills", "task_skills", "without_skills"]

_BUNDLED: Final = "skills"
Places = Sequence[tuple[Path, Path]]
"""Where a source of COPY may be meant to lie: before and after."""
_COPY: Final = re.compile(r"^\s*(COPY|ADD)\s+(.*)$", re.IGNORECASE | re.DOTALL)


def task_skills(task: Task, context: Path | None = None) -> list[Path]:
    """Every folder with a `SKILL.md` in the task's context, but for one inside another."""
    context = context or task.environment.context or task.path / "environment"
    found: list[Path] = []
    for folder in sorted(file.parent for file in context.rglob("SKILL.md")):
        if folder != context and not any(folder.is_relative_to(outer) for outer in found):
            found.append(folder)
    return found


def has_skills(task: Task, context: Path | None) -> bool:
    return bool(task_skills(task, context)) or (context is not None and (context / "SKILL.md").exists())


def without_skills(request: ImageRequest, task: Task, target: Path) -> ImageRequest:
    """The request on a copy of its context that has no skills, and no instruction that copies them."""
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
    """Our own place may lie in the context, and would be copied into itself."""
    own = folder.resolve()
    return lambda place, names: {own.name} & set(names) if Path(place).resolve() == own.parent else set()


def _remove(root: Path, folders: list[Path]) -> None:
    """And whatever is then left of the folders that held them."""
    shutil.rmtree(root / _BUNDLED, ignore_errors=True)
    (root / "SKILL.md").unlink(missing_ok=True)
    for folder in folders:
        shutil.rmtree(root / folder, ignore_errors=True)
        for parent in list(folder.parents)[:-1]:
            if (root / parent).is_dir() and not any((root / parent).iterdir()):
                (root / parent).rmdir()


def _without_copies(dockerfile: str, places: Places) -> str:
    """COPY and ADD of what is gone, gone too; a line with other sources keeps those."""
    text = re.sub(r"\\\n", "\\\\\0", dockerfile)
    lines = []
    for line in text.split("\n"):
        found = _COPY.match(line)
        lines.append(line if not found else _kept_copy(line, found, places))
    return "\n".join(line for line in lines if line is not None).replace("\\\0", "\\\n")


def _kept_copy(line: str, found: re.Match[str], places: Places) -> str | None:
    words = re.sub(r'[\[\]",\\\0]', " ", found[2]).split()
    flags = [word for word in words if word.startswith("--")]
    *sources, target = [word for word in words if not word.startswith("--")] or [""]
    if any(flag.startswith("--from") for flag in flags) or "<<" in line:
        return line
    kept = [source for source in sources if not _gone(source, places)]
    if len(kept) == len(sources):
        return line
    return f"{found[1]} {' '.join([*flags, *kept, target])}" if kept else None


def _gone(source: str, places: Places) -> bool:
    """It was in the context, and is not any more."""
    pattern = source.removeprefix("./").strip("/")
    if pattern in ("", ".") or "://" in source or ".." in Path(pattern).parts:
        return False
    was = any(True for before, _ in places for _ in before.glob(pattern))
    return was and not any(True for _, after in places for _ in after.glob(pattern))
