"""The `q` of files.list and drives.list: parsed to a tree, then asked about one item after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["BadQuery", "Condition", "QueryNode", "matches", "parse"]

Operators = dict[str, tuple[str, ...]]
_COMPARE = ("<=", "<", "=", "!=", ">", ">=")
FILE_TERMS: Operators = {
    "name": ("contains", "=", "!="),
    "title": (),
    "fullText": ("contains",),
    "mimeType": ("contains", "=", "!="),
    "modifiedTime": _COMPARE,
    "viewedByMeTime": _COMPARE,
    "createdTime": _COMPARE,
    "sharedWithMeTime": _COMPARE,
    "trashed": ("=", "!="),
    "starred": ("=", "!="),
    "parents": ("in",),
    "owners": ("in",),
    "writers": ("in",),
    "readers": ("in",),
    "sharedWithMe": ("=", "!="),
    "properties": ("has",),
    "appProperties": ("has",),
    "visibility": ("=", "!="),
    "shortcutDetails.targetId": ("=", "!="),
}
DRIVE_TERMS: Operators = {
    "name": ("contains", "=", "!="),
    "hidden": ("=", "!="),
    "createdTime": _COMPARE,
    "memberCount": _COMPARE,
    "organizerCount": _COMPARE,
}
_TOKEN = re.compile(r"\s*(?:('(?:[^'\\]|\\.)*')|(<=|>=|!=|[=<>(){}])|([A-Za-z_][\w.]*)|(-?\d+))", re.DOTALL)
_BOOLEANS = {"trashed", "starred", "sharedWithMe", "hidden"}
MAX_DEPTH = 50


class BadQuery(ValueError):
    """It cannot be read, or asks for what there is not."""


@dataclass(frozen=True, slots=True)
class Condition:
    term: str
    operator: str
    value: Any


@dataclass(frozen=True, slots=True)
class QueryNode:
    """`and`, `or`, `not`."""

    kind: str
    parts: tuple[Any, ...]


Tree = Condition | QueryNode


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadQuery(text)
        quoted, operator, word, number = match.groups()
        if quoted is not None:
            found.append(("value", re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL)))
        elif operator:
            found.append(("mark", operator))
        else:
            found.append(("word", word) if word else ("number", number))
        at = match.end()
    return found


class _Parser:
    def __init__(self, text: str, terms: Operators) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.terms = terms

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self, kind: str, *values: str) -> str:
        found, text = self.peek()
        if found != kind or (values and text not in values):
            raise BadQuery(text)
        self.at += 1
        return text

    def expression(self, depth: int = 0) -> Tree:
        """`and` and `or` bind alike, from left to right, as Drive has it."""
        if depth > MAX_DEPTH:
            raise BadQuery("nested too deeply")
        tree = self.unary(depth)
        while self.peek() in (("word", "and"), ("word", "or")):
            kind = self.take("word")
            tree = QueryNode(kind, (tree, self.unary(depth)))
        return tree

    def unary(self, depth: int) -> Tree:
        if self.peek() == ("word", "not"):
            self.at += 1
            if depth > MAX_DEPTH:
                raise BadQuery("nested too deeply")
            return QueryNode("not", (self.unary(depth + 1),))
        if self.peek() == ("mark", "("):
            self.at += 1
            tree = self.expression(depth + 1)
            self.take("mark", ")")
            return tree
        return self.condition()

    def condition(self) -> Tree:
        kind, _ = self.peek()
        if kind == "value":
            value = self.take("value")
            self.take("word", "in")
            return self._checked(self.take("word"), "in", value)
        term = self.take("word")
        operator = self.take("word", "contains", "has", "in") if self.peek()[0] == "word" else self.take("mark")
        if operator == "has":
            return self._checked(term, operator, self._pair())
        return self._checked(term, operator, self._value(term))

    def _value(self, term: str) -> Any:
        kind, text = self.peek()
        self.at += 1
        if term in _BOOLEANS:
            if kind in ("word", "value") and text in ("true", "false"):
                return text == "true"
            raise BadQuery(text)
        if kind not in ("value", "number"):
            raise BadQuery(text)
        return text

    def _pair(self) -> tuple[str, str]:
        self.take("mark", "{")
        self.take("word", "key")
        self.take("mark", "=")
        key = self.take("value")
        self.take("word", "and")
        self.take("word", "value")
        self.take("mark", "=")
        value = self.take("value")
        self.take("mark", "}")
        return key, value

    def _checked(self, term: str, operator: str, value: Any) -> Condition:
        if operator not in self.terms.get(term, ()):
            raise BadQuery(f"{term} {operator}")
        return Condition(term, operator, value)


def parse(text: str, terms: Operators) -> Tree:
    parser = _Parser(text, terms)
    tree = parser.expression()
    if parser.at != len(parser.tokens):
        raise BadQuery(text)
    return tree


def matches(tree: Tree, holds: Callable[[Condition], bool]) -> bool:
    if isinstance(tree, Condition):
        return holds(tree)
    if tree.kind == "not":
        return not matches(tree.parts[0], holds)
    if tree.kind == "and":
        return all(matches(part, holds) for part in tree.parts)
    return any(matches(part, holds) for part in tree.parts)


def compare(operator: str, left: Any, right: Any) -> bool:
    if left is None:
        return operator == "!="
    found: bool = {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]
    return found


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def name_contains(name: str, value: str) -> bool:
    """Every word of the value begins a word of the name; `World` does not find `HelloWorld`."""
    wanted = words(value)
    if not wanted:
        return value.lower() in name.lower()
    have = words(name)
    for start in range(len(have) - len(wanted) + 1):
        row = have[start : start + len(wanted)]
        if row[:-1] == wanted[:-1] and row[-1].startswith(wanted[-1]):
            return True
    return all(any(one.startswith(word) for one in have) for word in wanted)


def text_contains(text: str, value: str) -> bool:
    """All the words, anywhere; in double quotes the exact phrase."""
    phrase = re.fullmatch(r'\s*"(.*)"\s*', value, re.DOTALL)
    if phrase:
        wanted, have = words(phrase[1]), words(text)
        return any(have[i : i + len(wanted)] == wanted for i in range(len(have) - len(wanted) + 1)) if wanted else False
    have_set = set(words(text))
    return bool(words(value)) and all(word in have_set for word in words(value))
