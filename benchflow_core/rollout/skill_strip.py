"""The skills a task brings, and its build context without a trace of them."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.contracts.tasks import Task

__all__ = ["task_skills", "without_skills"]

_BUNDLED: Final = "skills"
_COPY: Final = re.compile(r"^\s*(COPY|ADD)\s+(.*)$", re.IGNORECASE | re.DOTALL)


def task_skills(task: Task) -> list[Path]:
    """Every folder with a `SKILL.md` in the task's context, but for one inside another."""
    context = task.environment.context or task.path / "environment"
    found: list[Path] = []
    for folder in sorted(file.parent for file in context.rglob("SKILL.md")):
        if folder != context and not any(folder.is_relative_to(outer) for outer in found):
            found.append(folder)
    return found


def without_skills(request: ImageRequest, task: Task, target: Path) -> ImageRequest:
    """The request on a copy of the task's context that has none of its skills, and no instruction that copies them."""
    context = task.environment.context
    if context is None:
        return request
    if not target.exists():
        staged = target.with_name(f".{target.name}")
        shutil.rmtree(staged, ignore_errors=True)
        shutil.copytree(context, staged, symlinks=True)
        _remove(staged, [folder.relative_to(context) for folder in task_skills(task)])
        for file in staged.rglob("*Dockerfile*"):
            if file.is_file() and not file.is_symlink():
                file.write_text(_without_copies(file.read_text("utf-8"), context, staged), "utf-8")
        staged.rename(target)

    def moved(path: Path | None) -> Path | None:
        return target / path.relative_to(context) if path is not None and path.is_relative_to(context) else path

    return replace(request, context=target, dockerfile=moved(request.dockerfile), compose=moved(request.compose))


def _remove(root: Path, folders: list[Path]) -> None:
    """And whatever is then left of the folders that held them."""
    shutil.rmtree(root / _BUNDLED, ignore_errors=True)
    for folder in folders:
        shutil.rmtree(root / folder, ignore_errors=True)
        for parent in list(folder.parents)[:-1]:
            if (root / parent).is_dir() and not any((root / parent).iterdir()):
                (root / parent).rmdir()


def _without_copies(dockerfile: str, context: Path, staged: Path) -> str:
    """COPY and ADD of what is gone, gone too; a line with other sources keeps those."""
    text = re.sub(r"\\\n", "\\\\\0", dockerfile)
    lines = []
    for line in text.split("\n"):
        found = _COPY.match(line)
        lines.append(line if not found else _kept_copy(line, found, context, staged))
    return "\n".join(line for line in lines if line is not None).replace("\\\0", "\\\n")


def _kept_copy(line: str, found: re.Match[str], context: Path, staged: Path) -> str | None:
    words = re.sub(r'[\[\]",\\\0]', " ", found[2]).split()
    flags = [word for word in words if word.startswith("--")]
    *sources, target = [word for word in words if not word.startswith("--")] or [""]
    if any(flag.startswith("--from") for flag in flags) or "<<" in line:
        return line
    kept = [source for source in sources if not _gone(source, context, staged)]
    if len(kept) == len(sources):
        return line
    return f"{found[1]} {' '.join([*flags, *kept, target])}" if kept else None


def _gone(source: str, context: Path, staged: Path) -> bool:
    """It was in the context, and is not any more."""
    pattern = source.removeprefix("./").strip("/")
    if pattern in ("", ".") or "://" in source or ".." in Path(pattern).parts:
        return False
    return any(True for _ in context.glob(pattern)) and not any(True for _ in staged.glob(pattern))
