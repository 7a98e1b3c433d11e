"""Skills as folders: what is in them, and bringing one from a repository."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchflow_core.contracts.bounded_yaml import load_yaml
from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass
from benchflow_core.task.sources import fetch_source

__all__ = ["CASES", "Skill", "find_skills", "install_skill", "read_skills", "without_cases"]

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
    """The folder itself, or those directly in it, that have a `SKILL.md`."""
    if (root / "SKILL.md").is_file():
        return [root]
    return sorted(path.parent for path in root.glob("*/SKILL.md") if path.is_file())


def read_skills(root: Path) -> list[Skill]:
    return [_read(folder) for folder in find_skills(root)]


def without_cases(folder: str, names: list[str]) -> set[str]:
    """For `shutil.copytree`: what a skill is evaluated by is no part of it, and an agent must not find the answers."""
    return {"evals"} & set(names) if Path(folder, CASES).is_file() else set()


def install_skill(word: str, target: Path, cache: Path, *, ref: str | None = None, force: bool = False) -> Skill:
    """`owner/repo@name`, or any source a plugin serves with `@name`, to a folder below `target`."""
    uri, separator, name = word.rpartition("@")
    if not separator or not uri or not re.fullmatch(r"\w(?:[\w. -]*[\w-])?", name):
        raise ConfigurationError(f"'{word}' names no skill.", remedy="Expected owner/repo@skill-name.")
    root = fetch_source(uri, ref=ref, cache=cache).root
    found = [skill for skill in _below(root) if name in (skill.name, skill.folder.name)]
    if not found:
        known = ", ".join(sorted(skill.name for skill in _below(root))[:8]) or "none"
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
    """Beside its place first: an old one stays until the new one is whole."""
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
    """What it says of name and description; what is no YAML is read line by line, as agents do."""
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
    """A regular file that no link led to: what a repository holds, and not what it points to on this machine."""
    return path.is_file() and not path.is_symlink() and path.resolve() == root.resolve() / path.relative_to(root)


def _links(folder: str, names: list[str]) -> set[str]:
    """A link could lead anywhere on this machine."""
    return {name for name in names if os.path.islink(os.path.join(folder, name))}  # noqa: PTH114, PTH118
