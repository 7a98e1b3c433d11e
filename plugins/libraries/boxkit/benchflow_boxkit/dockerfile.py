"""As much of a Dockerfile as we need to know before a vendor builds it: its FROMs and its ARGs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from benchflow_boxkit.instructions import Instruction, instructions
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import TaskError

__all__ = ["Recipe", "override", "parse", "with_arguments"]

_FROM: Final = re.compile(r"^\s*FROM\s+(?P<flags>(?:--\S+\s+)*)(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?\s*$", re.I)
_ARGUMENT: Final = re.compile(r"(\w+)(?:=(?:\"(?:\\.|[^\"])*\"|'[^']*'|\\.|[^\s\"'])*)?")
_DEFAULT: Final = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S*)")
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
    for instruction in instructions(text):
        if not count and instruction.word == "ARG":
            args |= {name: value.strip("\"'") for name, value in _DEFAULT.findall(instruction.text)}
        if found := _FROM.match(instruction.text):
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
    new: dict[Instruction, str] = {}
    for instruction in instructions(recipe.text):
        found = _FROM.match(instruction.text)
        if found and found["image"].lower() not in stages and found["image"] != "scratch":
            new[instruction] = f"FROM {image}" + (f" AS {found['name']}" if found["name"] else "")
        if found and found["name"]:
            stages.add(found["name"].lower())
    return parse(_with(recipe.text, new), recipe.path)


def with_arguments(recipe: Recipe, values: Mapping[str, str]) -> Recipe:
    """With build arguments as the defaults of its ARGs: not every vendor takes them beside the file."""
    if not values:
        return recipe
    new: dict[Instruction, str] = {}
    for instruction in instructions(recipe.text):
        if instruction.word == "ARG":
            words = [(found[1], found[0]) for found in _ARGUMENT.finditer(instruction.text, len("ARG "))]
            said = [f"{name}={json.dumps(values[name])}" if name in values else word for name, word in words]
            new[instruction] = f"ARG {' '.join(said)}"
    return parse(_with(recipe.text, new), recipe.path)


def _with(text: str, new: Mapping[Instruction, str]) -> str:
    """With other words on the lines of these instructions. Lines keep their numbers."""
    lines = text.splitlines()
    for instruction, said in new.items():
        lines[instruction.first : instruction.end] = [said, *[""] * (instruction.end - instruction.first - 1)]
    return "\n".join(lines) + "\n"
