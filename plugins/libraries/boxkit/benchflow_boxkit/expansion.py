"""Variables and words of a Dockerfile: `$x`, `${x:-y}`, quotes and escapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["Unsupported", "assignments", "expand", "words"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]")


class Unsupported(ValueError):
    """Raised for an expansion that is not known here; the message names it."""


class _Reader:
    """Reads a text once; `split` cuts it into words as a shell would."""

    def __init__(self, text: str, values: Mapping[str, str], escape: str, keep_unknown: bool) -> None:
        self.text, self.values, self.escape, self.at = text, values, escape, 0
        self.keep_unknown = keep_unknown

    def read(self, *, split: bool) -> list[str]:
        found: list[str] = []
        current: list[str] = []
        started = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if split and char in " \t":
                self.at += 1
                if started:
                    found.append("".join(current))
                current, started = [], False
                continue
            started = True
            current.append(self._piece(char))
        if started or not split:
            found.append("".join(current))
        return found

    def _piece(self, char: str) -> str:
        if char == "'":
            return self._single()
        if char == '"':
            return self._double()
        if char == "$":
            return self._variable()
        self.at += 1
        if char == self.escape and self.at < len(self.text):
            self.at += 1
            return self.text[self.at - 1]
        return char

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unsupported("a quote is not closed")
        piece, self.at = self.text[self.at + 1 : end], end + 1
        return piece

    def _double(self) -> str:
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(parts)
            if char == "$":
                parts.append(self._variable())
                continue
            following = self.text[self.at + 1 : self.at + 2]
            if char == self.escape and following in ('"', "$", self.escape):
                char, self.at = following, self.at + 1
            parts.append(char)
            self.at += 1
        raise Unsupported("a quote is not closed")

    def _variable(self) -> str:
        self.at += 1
        if self.text[self.at : self.at + 1] == "{":
            return self._braced()
        name = _NAME.match(self.text, self.at)
        if name is None:
            return "$"
        self.at = name.end()
        return self.values.get(name[0], f"${name[0]}" if self.keep_unknown else "")

    def _braced(self) -> str:
        depth, end = 1, self.at + 1
        while depth and end < len(self.text):
            depth += {"{": 1, "}": -1}.get(self.text[end], 0)
            end += 1
        inner = self.text[self.at + 1 : end - 1]
        name = _NAME.match(inner)
        if depth or name is None:
            raise Unsupported(f"${{{inner}}} is not understood")
        self.at = end
        rest, value = inner[name.end() :], self.values.get(name[0])
        if not rest:
            return f"${{{inner}}}" if value is None and self.keep_unknown else value or ""
        empty_counts = rest.startswith(":")
        operator, other = rest.removeprefix(":")[:1], rest.removeprefix(":")[1:]
        is_set = bool(value) if empty_counts else value is not None
        if operator == "-":
            return value or "" if is_set else self._nested(other)
        if operator == "+":
            return self._nested(other) if is_set else ""
        if operator == "?":
            if is_set:
                return value or ""
            raise Unsupported(f"{name[0]}: {other or 'not set'}")
        raise Unsupported(f"the expansion ${{{inner}}} is not supported")

    def _nested(self, text: str) -> str:
        return _Reader(text, self.values, self.escape, self.keep_unknown).read(split=False)[0]


def expand(text: str, values: Mapping[str, str], escape: str = "\\", *, keep_unknown: bool = False) -> str:
    """Fill in the variables of one word and remove its quotes. Unknown variables are empty unless they are kept."""
    return _Reader(text, values, escape, keep_unknown).read(split=False)[0]


def words(text: str, values: Mapping[str, str], escape: str = "\\", *, keep_unknown: bool = False) -> list[str]:
    """Split a text at blanks outside quotes and expand each word."""
    return _Reader(text, values, escape, keep_unknown).read(split=True)


def assignments(
    text: str, values: Mapping[str, str], escape: str = "\\", *, keep_unknown: bool = False
) -> dict[str, str]:
    """Read `ENV a=b c="d e"`, or the old form `ENV a b c`, where everything behind the name is the value."""
    first = text.split(None, 1)
    if "=" not in first[0]:
        if len(first) < 2:
            raise Unsupported(f"{first[0]} has no value")
        return {first[0]: expand(first[1], values, escape, keep_unknown=keep_unknown)}
    found = {}
    for word in words(text, values, escape, keep_unknown=keep_unknown):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Unsupported(f"{word!r} is not NAME=value")
        found[name] = value
    return found
