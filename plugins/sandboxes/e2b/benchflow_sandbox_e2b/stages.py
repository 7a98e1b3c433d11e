"""A Dockerfile as E2B's SDK can read it: one stage, and nothing in it that the SDK would leave out in silence.

Stages that build on one another become one; what is copied from others is listed, and a command that does nothing keeps
its place. Lines keep their numbers, so that whoever refuses one names the right one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from benchflow_boxkit.recipe import Recipe
from e2b_dockerfile_utils import DockerfileInstruction, DockerfileSyntaxError, parse_dockerfile_ast

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import TaskError
from benchflow_sandbox_e2b.copies import IMAGE, Copy, Variables, copy_from, refused

__all__ = ["Lowered", "lower", "lowered"]

_HARMLESS: Final = frozenset({"EXPOSE", "VOLUME", "LABEL", "MAINTAINER", "HEALTHCHECK", "STOPSIGNAL", "ONBUILD"})
"""What they say holds for containers that run, or for images made of this one."""
_KNOWN: Final = _HARMLESS | {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "USER", "WORKDIR"}
_FLAGS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "FROM": {"platform": ("linux/amd64", "$BUILDPLATFORM", "$TARGETPLATFORM", "${BUILDPLATFORM}", "${TARGETPLATFORM}")},
    "RUN": {"network": ("default",), "security": ("sandbox",)},
    "COPY": {"link": ("", "true", "false")},
    "ADD": {"link": ("", "true", "false"), "unpack": ("false",), "keep-git-dir": ("false",)},
}
"""Flags that the SDK leaves out, and their values for which that makes no difference."""
_HEEDED: Final = {"COPY": ("chown", "chmod", "from"), "ADD": ("chown", "chmod")}
_ARCHIVE: Final = re.compile(r"\.(tar|tgz|tbz2?|txz|tar\.\w+)$", re.I)
_ARG: Final = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_PLATFORM: Final = {
    f"{side}{word}": value
    for side in ("TARGET", "BUILD")
    for word, value in (("PLATFORM", "linux/amd64"), ("OS", "linux"), ("ARCH", "amd64"), ("VARIANT", ""))
}
"""Arguments that every builder knows, once a stage names them."""
_REMEDIES: Final = {
    "mount": "COPY the files that it mounts; secrets do not belong into an image.",
    "SHELL": 'Name the shell in each RUN: RUN ["bash", "-c", "…"].',
}


@dataclass(frozen=True, slots=True)
class Lowered:
    text: str
    base: str
    has_workdir: bool
    caches: Mapping[int, tuple[str, ...]]
    """Line of a RUN to the folders that it wants as caches: empty ones will do."""
    copies: tuple[Copy, ...] = ()


def lower(text: str, name: str, stage: int | None = None, numbers: Sequence[int] = ()) -> Lowered:
    """`stage`: another one than the last. `numbers`: what lines are called, where something was put between them."""
    try:
        read = parse_dockerfile_ast(text)
    except DockerfileSyntaxError as error:
        raise TaskError(f"{name}: {error}") from error
    found = read.instructions
    stages = _stages(found)
    if not stages:
        raise TaskError(f"{name}: there is no FROM.", remedy="Name the image it starts from.")
    globals_ = _globals(found)
    chain, base = _chain(stages, globals_, len(stages) - 1 if stage is None else stage)
    kept = [instruction for number in chain for instruction in stages[number]]
    caches: dict[int, tuple[str, ...]] = {}
    for instruction in kept:
        if folders := _check(instruction, name):
            caches[instruction.start_line] = folders
    first = kept[0]
    if base == "scratch" or "$" in base:
        raise refused(name, first.start_line, f"FROM {base}", "Name an image, or give the variable a default.")
    copies = _copies(stages, chain, Variables(globals_, read.escape_token), name, numbers)
    lines = text.splitlines()
    for instruction in found:
        rows = slice(instruction.start_line - 1, instruction.end_line)
        said = ""
        if instruction not in kept or instruction.name == "FROM":
            pass
        elif instruction.name == "ARG":
            said = "ARG " + " ".join(_with_default(word, globals_) for word in instruction.args)
        elif instruction.start_line in copies:
            said = f"RUN {copies[instruction.start_line].step}"
        else:
            continue
        lines[rows] = [said, *[""] * (len(lines[rows]) - 1)]
    lines[first.start_line - 1] = f"FROM {base}"
    has_workdir = any(one.name == "WORKDIR" for one in kept)
    return Lowered("\n".join(lines) + "\n", base, has_workdir, caches, tuple(copies.values()))


def lowered(recipe: Recipe, stage: int | None = None) -> Lowered:
    """Of an image to be; copies have the lines of the task's own Dockerfile."""
    return lower(recipe.text, recipe.name, stage, recipe.numbers)


def _copies(
    stages: Sequence[list[DockerfileInstruction]],
    chain: Sequence[int],
    known: Variables,
    name: str,
    numbers: Sequence[int],
) -> dict[int, Copy]:
    """By line."""
    found: dict[int, Copy] = {}
    named = [_name(stage).lower() for stage in stages]
    for number in chain:
        for instruction in stages[number]:
            known.follow(instruction)
            flags = dict(_flags(instruction))
            if instruction.name == "COPY" and "from" in flags:
                line = instruction.start_line
                copy = copy_from(instruction, flags, named[:number], known, name)
                found[line] = replace(copy, line=numbers[line - 1]) if numbers else copy
    return found


def _name(stage: Sequence[DockerfileInstruction]) -> str:
    words = stage[0].args
    return words[2] if len(words) == 3 else ""


def _stages(found: Sequence[DockerfileInstruction]) -> list[list[DockerfileInstruction]]:
    stages: list[list[DockerfileInstruction]] = []
    for instruction in found:
        if instruction.name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append(instruction)
    return stages


def _globals(found: Sequence[DockerfileInstruction]) -> dict[str, str]:
    """Arguments before the first FROM: they hold in FROM lines, and where a stage names them again."""
    values: dict[str, str] = dict(_PLATFORM)
    for instruction in found:
        if instruction.name == "FROM":
            break
        for word in instruction.args if instruction.name == "ARG" else ():
            name, given, value = word.partition("=")
            if given:
                values[name] = _expanded(value.strip("\"'"), values)
    return values


def _expanded(text: str, values: Mapping[str, str]) -> str:
    return _ARG.sub(lambda found: values.get(found[1] or found[3]) or found[2] or found[0], text)


def _with_default(word: str, values: Mapping[str, str]) -> str:
    return f'{word}="{values[word]}"' if word in values else word


def _chain(
    stages: Sequence[list[DockerfileInstruction]], values: Mapping[str, str], last: int
) -> tuple[list[int], str]:
    """The stages that the last one stands on, itself last, and the image below them."""
    named: dict[str, int] = {}
    bases: list[str] = []
    below: list[int | None] = []
    for number, stage in enumerate(stages):
        words = stage[0].args
        bases.append(_expanded(words[0] if words else "", values))
        below.append(named.get(bases[-1].lower()))
        if own := _name(stage):
            named[own.lower()] = number
    at: int | None = last
    chain: list[int] = []
    while at is not None:
        chain.insert(0, at)
        at = below[at]
    return chain, bases[chain[0]]


def _check(instruction: DockerfileInstruction, name: str) -> tuple[str, ...]:
    """Refuses what would be left out; returns the caches that a RUN wants."""
    line, word = instruction.start_line, instruction.name
    if word not in _KNOWN:
        raise refused(name, line, word, _REMEDIES.get(word, IMAGE))
    caches: list[str] = []
    for flag, value in _flags(instruction):
        if word == "RUN" and flag == "mount":
            caches.append(_cache(value, name, line))
        elif flag not in _HEEDED.get(word, ()) and value not in _FLAGS.get(word, {}).get(flag, ()):
            raise refused(name, line, f"{word} --{flag}", _REMEDIES.get(flag, IMAGE))
    if word == "ADD" and any(_ARCHIVE.search(source) for source in instruction.args[:-1]):
        raise refused(name, line, "ADD of an archive", "COPY it, and unpack it with RUN tar.")
    return tuple(caches)


def _flags(instruction: DockerfileInstruction) -> Iterator[tuple[str, str]]:
    if instruction.name in ("HEALTHCHECK", "ONBUILD"):
        return
    for flag in instruction.flags:
        name, _, value = flag.removeprefix("--").partition("=")
        yield name, value


def _cache(value: str, name: str, line: int) -> str:
    given = dict(part.partition("=")[::2] for part in value.split(","))
    target = given.get("target") or given.get("dst") or given.get("destination") or ""
    kind = given.get("type", "bind")
    if kind != "cache" or not target or "from" in given or "source" in given:
        raise refused(name, line, f"RUN --mount=type={kind}", _REMEDIES["mount"])
    return target
