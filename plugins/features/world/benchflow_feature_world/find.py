"""Where manifests are: a path, or `name@version` in a registry folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.errors import ConfigurationError
from benchflow_feature_world.manifest import SUFFIXES, Manifest, read_manifest

if TYPE_CHECKING:
    from benchflow_feature_world.installed import Plugins

__all__ = ["REGISTRY_VARIABLE", "drift", "find_manifest", "registered", "registry_folders", "user_folder"]

REGISTRY_VARIABLE: Final = "BENCHFLOW_ENV_REGISTRY"


def find_manifest(reference: str, plugins: Plugins, env: Mapping[str, str], base: Path | None = None) -> Manifest:
    """By path where it looks like one (relative ones from `base`), else by name from the registry folders."""
    path = Path(reference).expanduser()
    if "/" in reference or path.suffix.lower() in SUFFIXES or reference in (".", ".."):
        return read_manifest(path if path.is_absolute() or base is None else base / path)
    name, _, version = reference.partition("@")
    found = {at.stem: at for _, at in reversed(list(registered(plugins, env)))}
    stem = reference if version else name if name in found else _newest(name, found)
    if stem not in found:
        close = get_close_matches(reference, sorted(found), 1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        folders = ", ".join(str(folder) for _, folder in registry_folders(plugins, env)) or "none"
        raise ConfigurationError(
            f"there is no environment '{reference}'.{hint}",
            remedy=f"Run: bench environment list. Looked in: {folders}. A path has a '/' or ends with .toml.",
        )
    return read_manifest(found[stem])


def _newest(name: str, found: Mapping[str, Path]) -> str:
    versions = [stem for stem in found if stem.partition("@")[0] == name]
    return max(versions, key=lambda stem: _version_key(stem.partition("@")[2])) if versions else name


def _version_key(text: str) -> tuple[tuple[int, int, str], ...]:
    parts = text.replace("-", ".").split(".")
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)


def registered(plugins: Plugins, env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Every manifest of every registry folder, with whose folder it is; the first of a name is taken."""
    for owner, folder in registry_folders(plugins, env):
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        yield from ((owner, file) for file in files if file.suffix.lower() in SUFFIXES and file.is_file())


def registry_folders(plugins: Plugins, env: Mapping[str, str]) -> list[tuple[str, Path]]:
    """In the order they are looked in: `BENCHFLOW_ENV_REGISTRY`, the user's own, the installed plugins'."""
    named = env.get(REGISTRY_VARIABLE)
    folders = [(REGISTRY_VARIABLE, Path(part).expanduser()) for part in (named or "").split(os.pathsep) if part]
    if not named or any(folder.is_dir() for _, folder in folders):
        folders.append(("user", user_folder(env)))
        for loaded in plugins.mentioned("environment", None):
            if loaded.spec.manifests is not None:
                folders.append((loaded.name, loaded.spec.manifests))
        return folders
    raise ConfigurationError(f"{REGISTRY_VARIABLE} names no folder: {named}.")


def user_folder(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME") or "~").expanduser() / ".config")
    return Path(home) / "benchflow" / "environments"


def drift(lock: Mapping[str, Any], plugins: Plugins, env: Mapping[str, str]) -> list[str]:
    """Say whether the manifest that a user named for a rollout is another one now.

    One that the task pins is part of the task's digest.
    """
    world = lock.get("world")
    if not world or world.get("pinned_by") != "option":
        return []
    try:
        now = find_manifest(world["manifest"], plugins, env).environment.model_dump(mode="json")
    except ConfigurationError:
        return [f"environment {world['name']} is no longer at {world['manifest']}"]
    return [] if now == world["environment"] else [f"environment {world['name']} says something else now"]
