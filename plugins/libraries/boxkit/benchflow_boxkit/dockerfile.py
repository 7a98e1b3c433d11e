"""Reads Dockerfiles: instructions with their lines, flags and here-documents, stages, and the images below them.

Nothing is executed here. Where a vendor or an engine builds, reading is lenient: what only the builder knows is its
business. Where we follow the instructions ourselves it is strict, and every mistake names its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from benchflow_boxkit.expansion import Unsupported, expand, words
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import TaskError

__all__ = [
    "Dockerfile",
    "Heredoc",
    "Instruction",
    "Stage",
    "lines_of",
    "override",
    "parse",
    "platform_arguments",
    "rewritten",
    "with_arguments",
]

_BUILD: Final = frozenset({"ADD", "ARG", "COPY", "ENV", "FROM", "ONBUILD", "RUN", "SHELL", "USER", "VOLUME", "WORKDIR"})
_RUNTIME: Final = frozenset({"CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "LABEL", "MAINTAINER", "STOPSIGNAL"})
_KNOWN: Final = _BUILD | _RUNTIME
_WITH_FLAGS: Final = frozenset({"FROM", "RUN", "COPY", "ADD", "HEALTHCHECK"})
_WITH_DOCUMENTS: Final = frozenset({"RUN", "COPY", "ADD", "ONBUILD"})
_HEREDOC: Final = re.compile(r"\d*<<(-?)([\"']?)([^\s<\"']+)\2")
_DIRECTIVE: Final = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(\S+)\s*$")
_FLAG: Final = re.compile(r"--([a-z-]+)(?:=(\S*))?(?=\s|$)")
_ARGUMENT: Final = re.compile(r"(\w+)(?:=(?:\"(?:\\.|[^\"])*\"|'[^']*'|\\.|[^\s\"'])*)?")


@dataclass(frozen=True, slots=True)
class Heredoc:
    name: str
    text: str
    literal: bool
    """Its name was quoted: nothing in it is expanded."""


@dataclass(frozen=True, slots=True)
class Instruction:
    name: str
    """In capitals."""
    text: str
    """Everything behind the name and the flags on one line, without here-documents."""
    first: int
    end: int
    """Its lines are those from `first` up to `end`, counted from nothing."""
    flags: tuple[tuple[str, str], ...] = ()
    heredocs: tuple[Heredoc, ...] = ()

    @property
    def line(self) -> int:
        """Where it starts, counted from one as in messages."""
        return self.first + 1

    @property
    def words(self) -> list[str]:
        """Its arguments split at blanks, an array's as well; nothing is expanded."""
        return re.sub(r'[\[\]",]', " ", self.text).split()

    def array(self) -> list[str] | None:
        """Return the arguments of the exec form, `["a", "b"]`; `None` for the shell form."""
        if not self.text.startswith("["):
            return None
        try:
            found = json.loads(self.text)
        except ValueError:
            return None
        return found if isinstance(found, list) and all(isinstance(item, str) for item in found) else None


@dataclass(frozen=True, slots=True)
class Stage:
    head: Instruction
    base: str
    """The image, or the name of an earlier stage; not yet expanded."""
    name: str
    """In small letters; empty where it has none."""
    platform: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Dockerfile:
    path: str
    """For messages."""
    text: str
    globals: tuple[Instruction, ...]
    """ARG lines before the first FROM."""
    stages: tuple[Stage, ...]
    escape: str

    @property
    def instructions(self) -> list[Instruction]:
        return [*self.globals, *(one for stage in self.stages for one in (stage.head, *stage.instructions))]

    def defaults(self) -> dict[str, str]:
        """Return the arguments before the first FROM that have a value."""
        values: dict[str, str] = {}
        for instruction in self.globals:
            for word in words(instruction.text, values, self.escape, keep_unknown=True):
                name, given, value = word.partition("=")
                if given:
                    values[name] = value
        return values

    def stage_number(self, name: str, before: int) -> int | None:
        """Return the last stage of this name or number before another one."""
        numbers = [n for n, stage in enumerate(self.stages[:before]) if name.lower() == stage.name or name == str(n)]
        return numbers[-1] if numbers else None

    def bases(self, values: Mapping[str, str] | None = None) -> list[str]:
        """Return the image or stage that each stage names, with arguments put in as far as they are known."""
        known = self.defaults() if values is None else values
        return [self._expanded(stage.base, known) for stage in self.stages]

    def _expanded(self, base: str, known: Mapping[str, str]) -> str:
        try:
            return expand(base, known, self.escape, keep_unknown=True)
        except Unsupported:
            return base

    def images(self) -> list[str]:
        """Return the image below every stage: empty for `scratch` and for what build arguments decide."""
        found: list[str] = []
        for number, base in enumerate(self.bases()):
            below = self.stage_number(base, number) if not base.isdigit() else None
            found.append(found[below] if below is not None else "" if base == "scratch" or "$" in base else base)
        return found

    def base_of(self, target: str | None) -> str:
        """Return the image below a stage, or below the last one."""
        number = len(self.stages) - 1 if target is None else self.stage_number(target, len(self.stages))
        return "" if number is None else self.images()[number]


def parse(text: str, path: str = "Dockerfile", *, strict: bool = False) -> Dockerfile:
    """Raise `TaskError` naming file and line for what is not a Dockerfile; `strict` also for unknown instructions."""
    reader = _Reader(text, path, strict)
    before: list[Instruction] = []
    stages: list[tuple[Instruction, list[Instruction]]] = []
    for instruction in reader.instructions():
        if instruction.name == "FROM":
            stages.append((instruction, []))
        elif stages:
            stages[-1][1].append(instruction)
        elif instruction.name == "ARG" or not strict:
            before += [instruction] if instruction.name == "ARG" else []
        else:
            raise reader.error(instruction.line, f"{instruction.name} comes before the first FROM.", "Begin with FROM.")
    if not stages:
        raise reader.error(1, "there is no FROM.", "A Dockerfile begins with FROM and the name of an image.")
    return Dockerfile(path, text, tuple(before), tuple(reader.stage(*stage) for stage in stages), reader.escape)


def platform_arguments(architecture: str) -> dict[str, str]:
    """Return the arguments that every builder knows without an ARG line before the first FROM."""
    values = {"PLATFORM": f"linux/{architecture}", "OS": "linux", "ARCH": architecture, "VARIANT": ""}
    return {f"{side}{name}": value for side in ("TARGET", "BUILD") for name, value in values.items()}


def lines_of(text: str) -> list[str]:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n").split("\n")


class _Reader:
    def __init__(self, text: str, path: str, strict: bool) -> None:
        self._path, self._strict, self._lines, self._at = path, strict, lines_of(text), 0
        directives: dict[str, str] = {}
        while self._at < len(self._lines) and (found := _DIRECTIVE.match(self._lines[self._at])):
            name = found[1].lower()
            if name in directives or name not in ("syntax", "escape", "check"):
                break
            directives[name] = found[2]
            self._at += 1
        self.escape = "`" if directives.get("escape") == "`" else "\\"

    def error(self, line: int, text: str, remedy: str | None = None) -> TaskError:
        return TaskError(f"{self._path}:{line}: {text}", remedy=remedy)

    def instructions(self) -> Iterator[Instruction]:
        while self._at < len(self._lines):
            first, text = self._at, self._logical_line()
            if text:
                yield self._instruction(first, text)

    def _logical_line(self) -> str:
        """Join continued lines and leave comments out."""
        parts: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.lstrip().startswith("#") or (not line.strip() and parts):
                if not parts:
                    break
                continue
            stripped = line.rstrip(" \t")
            more = stripped.endswith(self.escape)
            part = stripped[:-1] if more else line
            parts.append(part if parts else part.lstrip())
            if not more:
                break
        return "".join(parts).strip()

    def _instruction(self, first: int, text: str) -> Instruction:
        word, *others = text.split(None, 1)
        name, rest, line = word.upper(), "".join(others).strip(), first + 1
        if self._strict and name not in _KNOWN:
            raise self.error(line, f"{word!r} is not an instruction.", f"Known: {', '.join(sorted(_KNOWN))}.")
        if self._strict and not rest and name != "CMD":
            raise self.error(line, f"{name} needs an argument.")
        flags = []
        while name in _WITH_FLAGS and (found := _FLAG.match(rest)):
            flags.append((found[1], found[2] or ""))
            rest = rest[found.end() :].lstrip()
        documents: list[Heredoc] = []
        if name in _WITH_DOCUMENTS and not rest.startswith("["):
            documents = [self._heredoc(line, mark) for mark in filter(None, map(_HEREDOC.fullmatch, rest.split()))]
        return Instruction(name, rest, first, self._at, tuple(flags), tuple(documents))

    def _heredoc(self, line: int, mark: re.Match[str]) -> Heredoc:
        begin = self._at
        rows = [row.lstrip("\t") if mark[1] else row for row in self._lines[begin:]]
        if mark[3] in rows:
            end = rows.index(mark[3])
            self._at = begin + end + 1
            return Heredoc(mark[3], "".join(f"{row}\n" for row in rows[:end]), bool(mark[2]))
        if self._strict:
            raise self.error(line, f"the heredoc {mark[3]} never ends.", f"Add a line with nothing but {mark[3]}.")
        return Heredoc(mark[3], "", bool(mark[2]))

    def stage(self, head: Instruction, body: list[Instruction]) -> Stage:
        said = head.text.split()
        if len(said) not in (1, 3) or (len(said) == 3 and said[1].upper() != "AS"):
            wanted = "Write FROM image, or FROM image AS name."
            raise self.error(head.line, f"FROM {head.text!r} is not understood.", wanted)
        name = said[2].lower() if len(said) == 3 else ""
        return Stage(head, said[0], name, dict(head.flags).get("platform", ""), tuple(body))


def override(dockerfile: Dockerfile, image: str) -> Dockerfile:
    """Put another image into every FROM that does not name a stage."""
    new: dict[Instruction, str] = {}
    for number, stage in enumerate(dockerfile.stages):
        named = any(stage.base.lower() == other.name for other in dockerfile.stages[:number])
        if not named and stage.base != "scratch":
            new[stage.head] = f"FROM {image}" + (f" AS {stage.head.text.split()[2]}" if stage.name else "")
    return parse(rewritten(dockerfile.text, new), dockerfile.path)


def with_arguments(dockerfile: Dockerfile, values: Mapping[str, str]) -> Dockerfile:
    """Make build arguments the defaults of its ARGs: not every vendor takes them beside the file."""
    new: dict[Instruction, str] = {}
    for instruction in dockerfile.instructions:
        if values and instruction.name == "ARG":
            given = [(found[1], found[0]) for found in _ARGUMENT.finditer(instruction.text)]
            said = [f"{name}={json.dumps(values[name])}" if name in values else word for name, word in given]
            new[instruction] = f"ARG {' '.join(said)}"
    return parse(rewritten(dockerfile.text, new), dockerfile.path) if new else dockerfile


def rewritten(text: str, new: Mapping[Instruction, str]) -> str:
    """Replace the lines of these instructions. Lines keep their numbers."""
    lines = lines_of(text)
    for instruction, said in new.items():
        lines[instruction.first : instruction.end] = [said, *[""] * (instruction.end - instruction.first - 1)]
    return "\n".join(lines) + "\n"
