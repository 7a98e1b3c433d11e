"""Skills as folders: what is in them, and copying one out of a repository."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchflow_core.contracts import Task
from benchflow_core.contracts.bounded_yaml import load_yaml
from benchflow_core.errors import ConfigurationError

__all__ = [
    "CASES",
    "Skill",
    "find_skills",
    "has_skills",
    "install_skill",
    "named",
    "read_skills",
    "required_skills",
    "task_skills",
    "without_cases",
]

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---", re.DOTALL)
_HEAD = 64 * 1024
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
    """Return the folder itself, or those directly in it, that have a `SKILL.md`."""
    if (root / "SKILL.md").is_file():
        return [root]
    return sorted(path.parent for path in root.glob("*/SKILL.md") if path.is_file())


def required_skills(root: Path) -> list[Path]:
    """Return what `find_skills` finds, by paths that end in a name. Raises `ConfigurationError` without any."""
    if not (found := find_skills(root)):
        raise ConfigurationError(f"no skill in {root}: a skill is a folder with a SKILL.md.")
    return [folder.resolve() if folder.name in ("", "..") else folder for folder in found]


def named(folders: Iterable[Path]) -> dict[str, Path]:
    """Return folders by their names; of one name, the last."""
    return {folder.name: folder for folder in folders}


def task_skills(task: Task, context: Path | None = None) -> list[Path]:
    """Return every folder with a `SKILL.md` in the task's context, but for one inside another."""
    context = context or task.environment.context or task.path / "environment"
    found: list[Path] = []
    for folder in sorted(file.parent for file in context.rglob("SKILL.md")):
        if folder != context and not any(folder.is_relative_to(outer) for outer in found):
            found.append(folder)
    return found


def has_skills(task: Task, context: Path | None) -> bool:
    """Tell whether there is a `SKILL.md` in the context."""
    return bool(task_skills(task, context)) or (context is not None and (context / "SKILL.md").exists())


def read_skills(root: Path) -> list[Skill]:
    """Return name and description of each skill of a folder."""
    return [_read(folder) for folder in find_skills(root)]


def without_cases(folder: str, names: list[str]) -> set[str]:
    """Tell `shutil.copytree` to leave out the cases that a skill is evaluated by: agents must not find the answers."""
    return {"evals"} & set(names) if Path(folder, CASES).is_file() else set()


def install_skill(word: str, target: Path, fetch: Callable[[str], Path], *, force: bool = False) -> Skill:
    """Copy `owner/repo@name`, or `@name` of anything else that `fetch` gives a folder for, below `target`."""
    uri, separator, name = word.rpartition("@")
    if not separator or not uri or not re.fullmatch(r"\w(?:[\w. -]*[\w-])?", name):
        raise ConfigurationError(f"'{word}' names no skill.", remedy="Expected owner/repo@skill-name.")
    below = list(_below(fetch(uri)))
    found = [skill for skill in below if name in (skill.name, skill.folder.name)]
    if not found:
        known = ", ".join(sorted(skill.name for skill in below)[:8]) or "none"
        raise ConfigurationError(f"{uri} has no skill '{name}'.", remedy=f"There: {known}.")
    place = target / name
    if place.exists() and not force:
        raise ConfigurationError(f"{place} exists already.", remedy="Replace it with --force.")
    try:
        _put(found[0].folder, place)
    except (OSError, shutil.Error) as error:
        said = getattr(error, "strerror", None) or "not everything could be copied"
        raise ConfigurationError(
            f"{place} cannot be written: {said}.", remedy="Name another folder with --to."
        ) from error
    return _read(place)


def _put(source: Path, place: Path) -> None:
    """Copy beside the place first: an old skill stays until the new one is whole."""
    place.parent.mkdir(parents=True, exist_ok=True)
    staged = place.with_name(f".{place.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(source, staged, symlinks=True, ignore=_links)
    if place.is_symlink() or place.is_file():
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)
    staged.rename(place)


def _below(root: Path) -> Iterator[Skill]:
    for number, file in enumerate(sorted(path for path in root.rglob("SKILL.md") if _own(path, root))):
        if number >= _MOST:
            return
        yield _read(file.parent)


def _read(folder: Path) -> Skill:
    try:
        with (folder / "SKILL.md").open("rb") as file:
            text = file.read(_HEAD).decode("utf-8", "replace")
    except OSError as error:
        raise ConfigurationError(f"{folder / 'SKILL.md'} cannot be read: {error.strerror}.") from error
    values = _front_matter(text)
    name, description = (" ".join(values.get(key, "").split()) for key in ("name", "description"))
    return Skill(name or folder.resolve().name, description, folder)


def _front_matter(text: str) -> dict[str, str]:
    """Return name and description; what is no YAML is read line by line, as agents do."""
    front = _FRONT.match(text)
    if not front:
        return {}
    try:
        values, _ = load_yaml(front[1], "SKILL.md")
    except ConfigurationError:
        values = {
            key: value.strip("\"' \r") for key, value in re.findall(r"^(\w+):[ \t]*(.+)$", front[1], re.MULTILINE)
        }
    wanted = ("name", "description")
    return {key: str(values[key]) for key in wanted if values.get(key)} if isinstance(values, dict) else {}


def _own(path: Path, root: Path) -> bool:
    """Tell a regular file that no link led to: what a repository holds, and not what it points to on this machine."""
    return path.is_file() and not path.is_symlink() and path.resolve() == root.resolve() / path.relative_to(root)


def _links(folder: str, names: list[str]) -> set[str]:
    """Tell `shutil.copytree` to leave out links: one could lead anywhere on this machine."""
    return {name for name in names if os.path.islink(os.path.join(folder, name))}  # noqa: PTH114, PTH118
