"""A git configuration without the keys that run programs or lead elsewhere, read exactly as git reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from benchflow_core.quick import dataclass

__all__ = ["harmless_git_config", "included_files"]

_LFS = re.compile(r"\s*git-lfs (?:clean -- %f|smudge (?:--skip )?-- %f|filter-process(?: --skip)?)\s*")
_PLAIN_COMMAND = re.compile(r"\s*[\w.+-]*(?:\s+-[\w-]+)*\s*")
"""The name of an editor, as people set it."""
_PLAIN_PATH = re.compile(r'[ \t]*"?([~/\w.][^"#;\\\n]*?)"?[ \t]*')
_SPACE: Final = " \t\r\n"
_HEADER = re.compile(r'\[([A-Za-z0-9.-]*)(?:[ \t\r]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=|\n)")
_POWER = re.compile(
    r"(?:include(?:if)?\.|url\.|credential\.|https?\.|protocol\.|trailer\.|pager\.|hook\.).*"
    r"|(?:filter\..*\.(?:clean|smudge|process)|diff\.(?:external|.*\.command)|core\.(?:worktree|attributesfile|askpass)"
    r"|submodule\..*\.update|remote\..*\.(?:uploadpack|receivepack|vcs)|init\.templatedir|safe\.barerepository)"
    r"|.*\.[a-z]*(?:command|cmd|program|hook|hookspath|helper|pager|proxy|driver|textconv|tunnel|editor|fsmonitor|difffilter)"
)
_BY_OTHER_WORDS: Final = {"filter": ("gitattributes", "clean filter", "smudge"), "url": ("insteadof",)}
"""Section to what an author writes who means it, beside the key itself."""


@dataclass(frozen=True, slots=True)
class _Entry:
    header: str
    name: str
    """As git compares it: section, subsection and key."""
    key: str
    value: str | None
    """As written, with quotes and continued lines."""

    def powerful(self) -> bool:
        """Would it run a program, or send git elsewhere? What `git lfs install` writes everybody has."""
        if _POWER.fullmatch(self.name) is None:
            return False
        if self.name.endswith(".editor"):
            return not _PLAIN_COMMAND.fullmatch(self.value or "")
        return not (self.value and _LFS.fullmatch(self.value))

    def includes(self) -> str | None:
        """The file that it takes in, where that is written plainly."""
        found = _PLAIN_PATH.fullmatch(self.value or "")
        return found[1] if found and re.fullmatch(r"include(?:if)?\..*path", self.name) else None

    def pointed(self, copies: Mapping[str, str]) -> _Entry:
        """With the copy of what it takes in, where there is one."""
        path = self.includes()
        return replace(self, value=f" {copies[path]}") if path in copies and path else self

    def meant(self, says: Callable[..., bool]) -> bool:
        """Does the task's author speak of it?"""
        section, _, last = self.name.partition(".")[0], "", self.name.rpartition(".")[2]
        hook = ("hook",) if last == "hookspath" else ()
        return says(f"{section}.{last}", *hook, *_BY_OTHER_WORDS.get(section, ()))


def included_files(text: str) -> list[str]:
    """What a configuration takes in from other files, as it names them."""
    return [path for entry in _entries(text) if (path := entry.includes())]


def harmless_git_config(
    text: str, says: Callable[..., bool] = lambda *_: False, instead: Mapping[str, str] | None = None
) -> tuple[str, list[str]]:
    """The configuration, and the names of what was left out. What the task's author `says` is kept.

    `instead`: files that are taken in, each with a harmless copy that is named in its place.
    """
    copies = instead or {}
    entries = list(_entries(text.replace("\r\n", "\n").removeprefix("\ufeff")))
    entries = [entry.pointed(copies) for entry in entries]
    kept = tuple(copies.values())
    left_out = [e for e in entries if e.powerful() and e.includes() not in kept and not e.meant(says)]
    if not left_out and not copies:
        return text, []
    lines, header = [], ""
    for entry in entries:
        if entry in left_out:
            continue
        if entry.header != header:
            header = entry.header
            lines.append(header)
        lines.append(f"\t{entry.key}" if entry.value is None else f"\t{entry.key} ={entry.value}")
    return "".join(f"{line}\n" for line in lines), [entry.name for entry in left_out]


def _entries(text: str) -> Iterator[_Entry]:
    """Up to the first mistake: git refuses the whole file for it."""
    at, header, section = 0, "", ""
    while at < len(text):
        if text[at] in _SPACE:
            at += 1
        elif text[at] in "#;":
            at = _end_of_line(text, at)
        elif found := _HEADER.match(text, at):
            header, at = found[0], found.end()
            section = found[1].lower() + (f".{found[2]}" if found[2] is not None else "")
        elif found := _KEY.match(text + "\n", at):
            value, at = None, found.end()
            if found[2] == "=":
                end = _end_of_value(text, at)
                value, at = text[at:end], end
            yield _Entry(header, f"{section}.{found[1].lower()}", found[1], value)
        else:
            return


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _end_of_value(text: str, at: int) -> int:
    """A value ends with its line; a backslash continues it, but not in a comment."""
    quoted = False
    while at < len(text) and text[at] != "\n":
        if text[at] == "\\":
            at += 1
        elif text[at] == '"':
            quoted = not quoted
        elif text[at] in "#;" and not quoted:
            return _end_of_line(text, at)
        at += 1
    return min(at, len(text))
