"""As much of a Dockerfile as we need to know before the engine reads it: its FROMs, and what takes BuildKit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from benchflow_core.errors import TaskError

__all__ = ["Recipe", "override", "parse"]

_FROM: Final = re.compile(r"^\s*FROM\s+(?P<flags>(?:--\S+\s+)*)(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?\s*$", re.I)
_HEREDOC: Final = re.compile(r"^\s*(RUN|COPY|ADD)\b.*<<-?\s*[\"']?[A-Za-z_]", re.I)
_BUILDKIT: Final = (
    (re.compile(r"^\s*RUN\s+.*--mount=", re.I), "RUN --mount"),
    (re.compile(r"^\s*(COPY|ADD)\s+.*--(chmod|link|parents|exclude)\b", re.I), "COPY --chmod or --link"),
    (re.compile(r"^\s*RUN\s+.*--(network|security)=", re.I), "RUN --network or --security"),
    (_HEREDOC, "a heredoc (<<EOF)"),
)
_SYNTAX: Final = re.compile(r"^#\s*syntax\s*=\s*(\S+)", re.I)
_ARG: Final = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")


@dataclass(frozen=True, slots=True)
class Recipe:
    path: str
    text: str
    bases: tuple[str, ...]
    """Images of every FROM that is not a stage, as far as they can be known."""
    stages: Mapping[str, str]
    """Stage, by name and by number, to the image under it: empty for `scratch` and for what build arguments decide."""
    needs_buildkit: tuple[str, ...] = ()

    def base_of(self, target: str | None) -> str:
        """The image under a stage, or under the last one."""
        last = str(max(int(name) for name in self.stages if name.isdigit()))
        return self.stages.get((target or last).lower(), "")


def parse(text: str, path: str) -> Recipe:
    stages: dict[str, str] = {}
    bases: list[str] = []
    needs: list[str] = []
    count = 0
    args: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        if not count and line.strip().upper().startswith("ARG "):
            name, _, value = line.strip()[4:].partition("=")
            args[name.strip()] = value.strip().strip("\"'")
        if syntax := _SYNTAX.match(line):
            needs.append(f"{where}: # syntax={syntax[1]}")
        needs += [f"{where}: {what}" for pattern, what in _BUILDKIT if pattern.match(line)]
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
    # A syntax line alone is only a wish: builders that do not know it go on without.
    hard = [need for need in needs if "# syntax" not in need]
    return Recipe(path, text, tuple(dict.fromkeys(bases)), stages, tuple(hard))


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
