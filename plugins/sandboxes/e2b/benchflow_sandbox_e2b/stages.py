"""Rewrites a Dockerfile into one that E2B's SDK can read: one stage, and nothing that the SDK would silently leave out.

Stages that build on one another become one; what is copied from others is listed, and a command that does nothing keeps
its place. Lines keep their numbers, so that an error names the right one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from benchflow_boxkit.dockerfile import Dockerfile, Instruction, lines_of, parse, platform_arguments
from benchflow_boxkit.expansion import Unsupported
from benchflow_boxkit.recipe import Recipe

from benchflow_core.contracts.quick import dataclass
from benchflow_sandbox_e2b.copies import IMAGE, CopyFrom, Variables, copy_from, refused

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
    copies: tuple[CopyFrom, ...] = ()


def lower(text: str, name: str, stage: int | None = None, numbers: Sequence[int] = ()) -> Lowered:
    """Keep one stage and those it stands on: the last one, or `stage`.

    `numbers`: what lines are called, where something was put between them.
    """
    source = parse(text, name)
    values = platform_arguments("amd64") | source.defaults()
    chain, base = _chain(source, values, len(source.stages) - 1 if stage is None else stage)
    kept = [one for number in chain for one in (source.stages[number].head, *source.stages[number].instructions)]
    caches = {one.line: folders for one in kept if (folders := _check(one, name))}
    first = kept[0]
    if base == "scratch" or "$" in base:
        raise refused(name, first.line, f"FROM {base}", "Name an image, or give the variable a default.")
    copies = _copies(source, chain, Variables(values, source.escape), numbers)
    lines = lines_of(text)
    for instruction in source.instructions:
        said = ""
        if instruction not in kept or instruction.name == "FROM":
            pass
        elif instruction.name == "ARG":
            said = "ARG " + " ".join(_with_default(word, values) for word in _raw_words(instruction))
        elif instruction.line in copies:
            said = f"RUN {copies[instruction.line].step}"
        else:
            continue
        rows = slice(instruction.first, instruction.end)
        lines[rows] = [said, *[""] * (len(lines[rows]) - 1)]
    lines[first.first] = f"FROM {base}"
    has_workdir = any(one.name == "WORKDIR" for one in kept)
    return Lowered("\n".join(lines) + "\n", base, has_workdir, caches, tuple(copies.values()))


def lowered(recipe: Recipe, stage: int | None = None) -> Lowered:
    """Of an image to be; copies have the lines of the task's own Dockerfile."""
    return lower(recipe.text, recipe.name, stage, recipe.numbers)


def _copies(source: Dockerfile, chain: Sequence[int], known: Variables, numbers: Sequence[int]) -> dict[int, CopyFrom]:
    """Return every `COPY --from` of these stages by its line."""
    found: dict[int, CopyFrom] = {}
    for number in chain:
        known.begin_stage()
        for instruction in source.stages[number].instructions:
            with contextlib.suppress(Unsupported):  # the SDK refuses it by line
                known.follow(instruction)
            if instruction.name == "COPY" and "from" in dict(instruction.flags):
                line = instruction.line
                copy = copy_from(instruction, source, number, known)
                found[line] = replace(copy, line=numbers[line - 1]) if numbers else copy
    return found


def _raw_words(instruction: Instruction) -> list[str]:
    return re.findall(r"(?:\"(?:\\.|[^\"])*\"|'[^']*'|\S)+", instruction.text)


def _with_default(word: str, values: Mapping[str, str]) -> str:
    return f'{word}="{values[word]}"' if word in values else word


def _chain(source: Dockerfile, values: Mapping[str, str], last: int) -> tuple[list[int], str]:
    """Return the stages that the last one stands on, itself last, and the image below them."""
    bases = source.bases(values)
    chain = [last]
    while (below := source.stage_number(bases[chain[0]], chain[0])) is not None and not bases[chain[0]].isdigit():
        chain.insert(0, below)
    return chain, bases[chain[0]]


def _check(instruction: Instruction, name: str) -> tuple[str, ...]:
    """Refuse what would be left out; return the caches that a RUN wants."""
    line, word = instruction.line, instruction.name
    if word not in _KNOWN:
        raise refused(name, line, word, _REMEDIES.get(word, IMAGE))
    caches: list[str] = []
    for flag, value in instruction.flags if word != "HEALTHCHECK" else ():
        if word == "RUN" and flag == "mount":
            caches.append(_cache(value, name, line))
        elif flag not in _HEEDED.get(word, ()) and value not in _FLAGS.get(word, {}).get(flag, ()):
            raise refused(name, line, f"{word} --{flag}", _REMEDIES.get(flag, IMAGE))
    if word == "ADD" and any(_ARCHIVE.search(source) for source in instruction.words[:-1]):
        raise refused(name, line, "ADD of an archive", "COPY it, and unpack it with RUN tar.")
    return tuple(caches)


def _cache(value: str, name: str, line: int) -> str:
    given = dict(part.partition("=")[::2] for part in value.split(","))
    target = given.get("target") or given.get("dst") or given.get("destination") or ""
    kind = given.get("type", "bind")
    if kind != "cache" or not target or "from" in given or "source" in given:
        raise refused(name, line, f"RUN --mount=type={kind}", _REMEDIES["mount"])
    return target
