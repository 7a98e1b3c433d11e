"""Skills as folders: what is in them, and bringing one from a repository."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError
from benchflow_core.task.sources import fetch_source

__all__ = ["CASES", "Skill", "find_skills", "install_skill", "read_skills", "without_cases"]

_FRONT = re.compile(r"\A---\n(.*?)\n---", re.DOTALL)
_MOST = 2000
CASES = "evals/evals.json"
"""In a skill's folder: the cases it is evaluated by."""


@dataclass(frozen=True, slots=True)
class Skill:
    """A folder with a `SKILL.md`."""

    name: str
    description: str
    folder: Path


def find_skills(root: Path) -> list[Path]:
    """The folder itself, or those directly in it, that have a `SKILL.md`."""
    if (root / "SKILL.md").is_file():
        return [root]
    return sorted(path.parent for path in root.glob("*/SKILL.md"))


def read_skills(root: Path) -> list[Skill]:
    return [_read(folder) for folder in find_skills(root)]


def without_cases(folder: str, names: list[str]) -> set[str]:
    """For `shutil.copytree`: what a skill is evaluated by is no part of it, and an agent must not find the answers."""
    return {"evals"} & set(names) if Path(folder, CASES).is_file() else set()


def install_skill(word: str, target: Path, cache: Path, *, ref: str | None = None, force: bool = False) -> Skill:
    """`owner/repo@name`, or any source a plugin serves with `@name`, to a folder below `target`."""
    uri, separator, name = word.rpartition("@")
    if not separator or not uri or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ConfigurationError(f"'{word}' names no skill.", remedy="Expected owner/repo@skill-name.")
    root = fetch_source(uri, ref=ref, cache=cache).root
    found = [skill for skill in _below(root) if name in (skill.name, skill.folder.name)]
    if not found:
        known = ", ".join(sorted(skill.name for skill in _below(root))[:8]) or "none"
        raise ConfigurationError(f"{uri} has no skill '{name}'.", remedy=f"There: {known}.")
    place = target / name
    if place.exists() and not force:
        raise ConfigurationError(f"{place} exists already.", remedy="Replace it with --force.")
    place.parent.mkdir(parents=True, exist_ok=True)
    staged = place.with_name(f".{name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(found[0].folder, staged, symlinks=True, ignore=_links)
    shutil.rmtree(place, ignore_errors=True)
    staged.rename(place)
    return _read(place)


def _below(root: Path) -> Iterator[Skill]:
    for number, file in enumerate(sorted(root.rglob("SKILL.md"))):
        if number >= _MOST:
            return
        yield _read(file.parent)


def _read(folder: Path) -> Skill:
    text = (folder / "SKILL.md").read_text("utf-8", "replace")
    front = _FRONT.match(text)
    values = dict(re.findall(r"^(name|description):\s*(.+)$", front[1], re.MULTILINE)) if front else {}
    return Skill(values.get("name", folder.name).strip("\"' "), values.get("description", "").strip("\"' "), folder)


def _links(folder: str, names: list[str]) -> set[str]:
    """A link could lead anywhere on this machine."""
    return {name for name in names if os.path.islink(os.path.join(folder, name))}  # noqa: PTH114, PTH118
