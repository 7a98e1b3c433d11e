"""Reading a Dockerfile into stages of instructions. Nothing is executed or expanded here."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Final

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import TaskError

__all__ = ["Heredoc", "Instruction", "Recipe", "Stage", "own_architecture", "parse"]

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}

KNOWN: Final = frozenset(
    [
        "FROM",
        "RUN",
        "CMD",
        "LABEL",
        "MAINTAINER",
        "EXPOSE",
        "ENV",
        "ADD",
        "COPY",
        "ENTRYPOINT",
        "VOLUME",
        "USER",
        "WORKDIR",
        "ARG",
        "ONBUILD",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "SHELL",
    ]
)
_HEREDOC: Final = re.compile(r"<<(-?)([\"']?)([A-Za-z_][A-Za-z0-9_.]*)\2")
_DIRECTIVE: Final = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(\S+)\s*$")
_FLAG: Final = re.compile(r"--([a-z-]+)(?:=(\S*))?(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Heredoc:
    name: str
    text: str
    literal: bool
    """Its name was quoted: nothing in it is expanded."""


@dataclass(frozen=True, slots=True)
class Instruction:
    line: int
    """Where it starts, from 1."""
    name: str
    text: str
    """Everything behind the name and the flags."""
    flags: tuple[tuple[str, str], ...] = ()
    heredocs: tuple[Heredoc, ...] = ()

    def array(self) -> list[str] | None:
        """The arguments of the exec form, `["a", "b"]`; `None` for the shell form."""
        if not self.text.startswith("["):
            return None
        try:
            found = json.loads(self.text)
        except ValueError:
            return None
        return found if isinstance(found, list) and all(isinstance(item, str) for item in found) else None


@dataclass(frozen=True, slots=True)
class Stage:
    line: int
    base: str
    """The image, or the name of an earlier stage; not yet expanded."""
    name: str
    platform: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    path: str
    """For messages."""
    globals: tuple[Instruction, ...]
    """ARG lines before the first FROM."""
    stages: tuple[Stage, ...]
    escape: str = "\\"


@dataclass(slots=True)
class _Lines:
    path: str
    lines: list[str]
    escape: str = "\\"
    at: int = 0
    directives: dict[str, str] = field(default_factory=dict)

    def error(self, line: int, text: str, remedy: str | None = None) -> TaskError:
        return TaskError(f"{self.path}:{line}: {text}", remedy=remedy)

    def read_directives(self) -> None:
        while self.at < len(self.lines) and (found := _DIRECTIVE.match(self.lines[self.at])):
            name = found[1].lower()
            if name in self.directives or name not in ("syntax", "escape", "check"):
                return
            self.directives[name] = found[2]
            self.at += 1
        if self.directives.get("escape") == "`":
            self.escape = "`"

    def logical(self) -> Iterator[tuple[int, str]]:
        """Lines with their continuations joined, comments gone."""
        while self.at < len(self.lines):
            start = self.at + 1
            parts: list[str] = []
            while self.at < len(self.lines):
                line = self.lines[self.at]
                self.at += 1
                if line.lstrip().startswith("#") or (not line.strip() and parts):
                    continue
                head, more = self._continued(line)
                parts.append(head if parts else head.lstrip())
                if not more:
                    break
            text = "".join(parts).strip()
            if text:
                yield start, text

    def _continued(self, line: str) -> tuple[str, bool]:
        stripped = line.rstrip(" \t")
        return (stripped[:-1], True) if stripped.endswith(self.escape) else (line, False)

    def heredoc(self, line: int, mark: re.Match[str]) -> Heredoc:
        body: list[str] = []
        while self.at < len(self.lines):
            text = self.lines[self.at]
            self.at += 1
            if (text.lstrip("\t") if mark[1] else text) == mark[3]:
                return Heredoc(mark[3], "".join(f"{row}\n" for row in body), bool(mark[2]))
            body.append(text.lstrip("\t") if mark[1] else text)
        raise self.error(line, f"the heredoc {mark[3]} never ends.", f"Add a line with nothing but {mark[3]}.")


def parse(text: str, path: str = "Dockerfile") -> Recipe:
    """Raises `TaskError` naming file and line for what is not a Dockerfile."""
    lines = _Lines(path, text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"))
    lines.read_directives()
    before: list[Instruction] = []
    stages: list[tuple[Instruction, list[Instruction]]] = []
    for number, row in lines.logical():
        instruction = _instruction(lines, number, row)
        if instruction.name == "FROM":
            stages.append((instruction, []))
        elif stages:
            stages[-1][1].append(instruction)
        elif instruction.name == "ARG":
            before.append(instruction)
        else:
            raise lines.error(number, f"{instruction.name} comes before the first FROM.", "Begin with FROM.")
    if not stages:
        raise lines.error(1, "there is no FROM.", "A Dockerfile begins with FROM and the name of an image.")
    return Recipe(path, tuple(before), tuple(_stage(lines, *stage) for stage in stages), lines.escape)


def _instruction(lines: _Lines, number: int, row: str) -> Instruction:
    word, _, rest = row.partition(" ") if " " in row.replace("\t", " ") else (row, "", "")
    if "\t" in word:
        word, _, rest = row.partition("\t")
    name, rest = word.upper(), rest.strip()
    if name not in KNOWN:
        raise lines.error(number, f"{word!r} is not an instruction.", f"Known: {', '.join(sorted(KNOWN))}.")
    if not rest and name != "CMD":
        raise lines.error(number, f"{name} needs an argument.")
    flags = []
    if name in ("FROM", "RUN", "COPY", "ADD", "HEALTHCHECK"):
        while found := _FLAG.match(rest):
            flags.append((found[1], found[2] or ""))
            rest = rest[found.end() :].lstrip()
    heredocs: tuple[Heredoc, ...] = ()
    if name in ("RUN", "COPY", "ADD") and not rest.startswith("["):
        heredocs = tuple(lines.heredoc(number, mark) for mark in _HEREDOC.finditer(rest))
    return Instruction(number, name, rest, tuple(flags), heredocs)


def _stage(lines: _Lines, head: Instruction, body: list[Instruction]) -> Stage:
    words = head.text.split()
    if len(words) not in (1, 3) or (len(words) == 3 and words[1].upper() != "AS"):
        raise lines.error(
            head.line, f"FROM {head.text!r} is not understood.", "Write FROM image, or FROM image AS name."
        )
    name = words[2].lower() if len(words) == 3 else ""
    return Stage(head.line, words[0], name, dict(head.flags).get("platform", ""), tuple(body))


def own_architecture() -> str:
    """Of this host, as Dockerfiles call it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())
