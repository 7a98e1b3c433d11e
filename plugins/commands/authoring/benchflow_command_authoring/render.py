"""Templates: plain files with `{{name}}` in them, below `templates/<kind>` and `templates/common`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_core.hookspecs import GROUPS

__all__ = ["TEMPLATES", "render", "variables"]

TEMPLATES: Final = Path(__file__).parent / "templates"
_HOLE: Final = re.compile(r"\{\{(\w+)\}\}")

NEEDED: Final = {
    "agent": ("benchflow-acp",),
    "executor": ("benchflow-executor-processes",),
    "sandbox": ("benchflow-wires",),
}
"""What a plugin of a kind stands on besides the core."""

NEEDED_BY_TESTS: Final = {
    "agent": ("benchflow-sandbox-local",),
    "feature": ("benchflow-sandbox-local",),
    "verifier": ("benchflow-sandbox-local",),
    "executor": (
        "benchflow-adapter-harbor",
        "benchflow-agent-oracle",
        "benchflow-driver-scenes",
        "benchflow-sandbox-local",
        "benchflow-verifier-script",
    ),
}
"""The conformance suites of these kinds run in a box; that of executors runs whole rollouts."""

IN_PACKAGE: Final = (".py", ".typed")
"""Endings of files that go into the import package, as folders do; `test_*.py` go to `tests/`, the rest to the root."""


def variables(kind: str, name: str, author: str, core_version: str) -> dict[str, Any]:
    """Return what a template may refer to: text, and in TOML also a list."""
    dist = f"benchflow-{kind}-{name}"
    return {
        "kind": kind,
        "group": GROUPS[kind],
        "name": name,
        "dist": dist,
        "module": dist.replace("-", "_"),
        "identifier": name.replace("-", "_"),
        "class_name": "".join(part.capitalize() for part in name.split("-")),
        "author": author,
        "test_requires": ["benchflow-testing-kit", *NEEDED_BY_TESTS.get(kind, ())],
        "requires": [f"{name}{core_range(core_version)}" for name in ("benchflow-core", *NEEDED.get(kind, ()))],
        "about": (TEMPLATES / kind / "about.md").read_text(encoding="utf-8").strip(),
    }


def core_range(version: str) -> str:
    """From this core up to the next minor version, as our own plugins declare it."""
    major, minor = version.split(".")[:2]
    return f">={version},<{major}.{int(minor) + 1}"


def render(kind: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return relative path to content of every file of the new package."""
    found = {}
    for folder in (TEMPLATES / "common", TEMPLATES / kind):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "about.md" and "__pycache__" not in path.parts:
                text = path.read_text(encoding="utf-8")
                found[_destination(path.relative_to(folder), values)] = _fill_file(path, text, values)
    return found


def _destination(path: Path, values: Mapping[str, Any]) -> str:
    if path.name == "gitignore":
        return ".gitignore"
    if path.name.startswith("test_"):
        return f"tests/{path.name}"
    inside = path.suffix in IN_PACKAGE or len(path.parts) > 1
    return f"{values['module']}/{path}".replace("__name__", values["name"]) if inside else str(path)


def _fill_file(path: Path, text: str, values: Mapping[str, Any]) -> str:
    import tomli_w

    if path.suffix == ".toml":
        return tomli_w.dumps(_fill_data(tomllib.loads(text), values))
    return _fill(_fill(text, values), values)  # what a value brings may have holes of its own


def _fill_data(data: Any, values: Mapping[str, Any]) -> Any:
    """Fill the strings and keys of TOML. A string that is nothing but a hole becomes the value, whatever its type."""
    if isinstance(data, dict):
        return {_fill(key, values): _fill_data(value, values) for key, value in data.items()}
    if isinstance(data, list):
        return [_fill_data(value, values) for value in data]
    if isinstance(data, str):
        hole = _HOLE.fullmatch(data)
        return values[hole[1]] if hole else _fill(data, values)
    return data


def _fill(text: str, values: Mapping[str, Any]) -> str:
    return _HOLE.sub(lambda hole: values[hole[1]], text)
