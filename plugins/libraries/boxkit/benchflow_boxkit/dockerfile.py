"""As much of a Dockerfile as we need to know before a vendor builds it: its FROMs and its ARGs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import TaskError

__all__ = ["Recipe", "override", "parse", "with_arguments"]

_FROM: Final = re.compile(r"^\s*FROM\s+(?P<flags>(?:--\S+\s+)*)(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?\s*$", re.I)
_ARG: Final = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")


@dataclass(frozen=True, slots=True)
class Recipe:
    path: str
    text: str
    bases: tuple[str, ...]
    """Images of every FROM that is not a stage, as far as they can be known."""
    stages: Mapping[str, str]
    """Stage, by name and by number, to the image under it: empty for `scratch` and for what build arguments decide."""

    def base_of(self, target: str | None) -> str:
        """The image under a stage, or under the last one."""
        last = str(max(int(name) for name in self.stages if name.isdigit()))
        return self.stages.get((target or last).lower(), "")


def parse(text: str, path: str) -> Recipe:
    stages: dict[str, str] = {}
    bases: list[str] = []
    count = 0
    args: dict[str, str] = {}
    for line in text.splitlines():
        if not count and line.strip().upper().startswith("ARG "):
            name, _, value = line.strip()[4:].partition("=")
            args[name.strip()] = value.strip().strip("\"'")
        if found := _FROM.match(line):
            image = _expanded(found["image"], args)
            base = stages.get(image.lower(), "" if image == "scratch" or "$" in image else image)
            if image.lower() not in stages and base:
                bases.append(base)
            if found["name"]:
                stages[found["name"].lower()] = base
            stages[str(count)] = base
            count += 1
    if not count:
        raise TaskError(f"{path}: there is no FROM.", remedy="Name the image it starts from.")
    return Recipe(path, text, tuple(dict.fromkeys(bases)), stages)


def _expanded(image: str, args: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        return args.get(found[1] or found[3]) or found[2] or found[0]

    return _ARG.sub(value, image)


def override(recipe: Recipe, image: str) -> Recipe:
    """With another image in every FROM that is not a stage."""
    stages: set[str] = set()
    lines = []
    for line in recipe.text.splitlines():
        found = _FROM.match(line)
        if found and found["image"].lower() not in stages and found["image"] != "scratch":
            name = f" AS {found['name']}" if found["name"] else ""
            line = f"FROM {image}{name}"
        if found and found["name"]:
            stages.add(found["name"].lower())
        lines.append(line)
    return replace(parse("\n".join(lines) + "\n", recipe.path), path=recipe.path)


def with_arguments(recipe: Recipe, values: Mapping[str, str]) -> Recipe:
    """With build arguments as the defaults of its ARGs: not every vendor takes them beside the file."""
    if not values:
        return recipe
    lines = []
    for line in recipe.text.splitlines():
        words = line.split(None, 1)
        name = words[1].partition("=")[0].strip() if len(words) == 2 and words[0].upper() == "ARG" else ""
        lines.append(f"ARG {name}={json.dumps(values[name])}" if name in values else line)
    return parse("\n".join(lines) + "\n", recipe.path)
