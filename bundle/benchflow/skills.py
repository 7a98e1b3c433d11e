"""Skills: folders with a `SKILL.md`."""

from __future__ import annotations

from pathlib import Path

from benchflow_feature_standard.skills import folders

from benchflow_core.dotenv import user_env
from benchflow_core.errors import ConfigurationError
from benchflow_core.results.layout import cache_dir
from benchflow_core.task.sources import fetch_source

__all__ = ["SkillInfo", "discover_skills", "install_skill", "parse_skill"]

SkillInfo = folders.Skill


def discover_skills(folder: str | Path) -> list[SkillInfo]:
    """Return the skills in a folder, or the folder itself."""
    return folders.read_skills(Path(folder))


def parse_skill(path: str | Path) -> SkillInfo:
    """Read one skill: its folder, or its `SKILL.md`."""
    folder = Path(path).parent if Path(path).name == "SKILL.md" else Path(path)
    found = folders.read_skills(folder)
    if len(found) != 1 or found[0].folder != folder:
        raise ConfigurationError(f"{path} is no skill: a skill is a folder with a SKILL.md.")
    return found[0]


def install_skill(word: str, target: str | Path = "~/.agents/skills", *, ref: str | None = None) -> SkillInfo:
    """Copy `owner/repo@name` to a folder below `target`."""

    def fetch(uri: str) -> Path:
        return fetch_source(uri, ref=ref, cache=cache_dir(user_env())).root

    return folders.install_skill(word, Path(target).expanduser(), fetch)
