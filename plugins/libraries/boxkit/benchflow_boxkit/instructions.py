"""The instructions of a Dockerfile and their lines: continued lines, comments and here-documents told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from benchflow_core.contracts.quick import dataclass

__all__ = ["Instruction", "instructions"]

_ESCAPE: Final = re.compile(r"(?:#.*\n)*#\s*escape\s*=\s*`", re.IGNORECASE)
_HERE: Final = re.compile(r"\d*<<(-?)([\"']?)([^\s<\"']+)\2")
_WITH_DOCUMENTS: Final = frozenset({"RUN", "COPY", "ADD", "ONBUILD"})


@dataclass(frozen=True, slots=True)
class Instruction:
    word: str
    """In capitals."""
    text: str
    """All of it on one line, without its here-documents."""
    first: int
    end: int
    """Its lines are those from `first` up to `end`, counted from nothing."""

    @property
    def words(self) -> list[str]:
        """After the first; an array's as well."""
        return re.sub(r'[\[\]",]', " ", self.text).split()[1:]


def instructions(text: str) -> Iterator[Instruction]:
    lines = text.splitlines()
    escape = "`" if _ESCAPE.match(text) else "\\"
    at = 0
    while at < len(lines):
        first, said = at, ""
        more = True
        while more and at < len(lines):
            line = lines[at].rstrip()
            at += 1
            if not line.strip() or line.lstrip().startswith("#"):
                more = bool(said)
                continue
            more = line.endswith(escape)
            said += line[:-1] + " " if more else line
        if said.strip():
            word = said.split()[0].upper()
            at = _after_documents(lines, at, said) if word in _WITH_DOCUMENTS else at
            yield Instruction(word, said.strip(), first, at)


def _after_documents(lines: Sequence[str], at: int, said: str) -> int:
    for found in filter(None, map(_HERE.fullmatch, said.split())):
        ends = [n for n in range(at, len(lines)) if (lines[n].lstrip("\t") if found[1] else lines[n]) == found[3]]
        at = ends[0] + 1 if ends else at
    return at
