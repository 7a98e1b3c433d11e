"""TOML with line numbers: parsing, and finding the line of a key afterwards, only when something is to be said."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from benchflow_adapter_harbor.bounds import refuse_unbounded
from benchflow_adapter_harbor.files import problem
from benchflow_adapter_harbor.report import Where

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_KEY = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*""")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_TOKEN = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|[\[\]{},\n]|[^"'\#\[\]{},\n]+''',
    re.DOTALL,
)


def parse_toml(text: str, file: Path) -> dict[str, Any]:
    """The document, or a `TaskError` with the line, what the parser expected and the text that is there."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_problem(str(error), text, file) from error
    except RecursionError as error:
        raise problem(file, "is nested too deeply", code="syntax") from error
    except ValueError as error:  # a number with thousands of digits, a date that does not exist
        raise problem(file, f"is not valid TOML: {error}", code="syntax") from error
    refuse_unbounded(data, file)
    return data


def _syntax_problem(message: str, text: str, file: Path) -> Exception:
    found = _AT.search(message)
    lines = text.split("\n")
    line = int(found[1]) if found and found[1] else max(1, len(text.rstrip("\n").split("\n")))
    what = _AT.sub("", message)
    shown = lines[line - 1].strip()[:80] if line <= len(lines) else ""
    remedy = "Text needs quotes." if what == "Invalid value" else ""
    what = f"is not valid TOML: {what[:1].lower()}{what[1:]}" + (f", in: {shown}" if shown else "")
    return problem(file, what, line=line, remedy=remedy, code="syntax")


def line_in_toml(text: str, where: Where) -> int | None:
    """The line of a key, or of the nearest table around it. `text` has been parsed before."""
    lines = _scan(text)
    while where:
        if where in lines:
            return lines[where]
        where = where[:-1]
    return None


def _scan(text: str) -> dict[Where, int]:
    lines: dict[Where, int] = {}
    counts: dict[Where, int] = {}
    table: Where = ()
    position = _gap(text, 0)
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        if text[position] == "[":
            many = text.startswith("[[", position)
            names, position = _keys(text, position + 1 + many)
            table = _resolve(names, counts, many)
            _note(lines, table, 0, line)
            position += 1 + many
        else:
            names, position = _keys(text, position)
            place = table + names
            _note(lines, place, len(table), line)
            position = _skip_value(text, position + 1, place, lines)
        position = _gap(text, position)
    return lines


def _note(lines: dict[Where, int], place: Where, known: int, line: int) -> None:
    """A key brings every table around it into being that is not there yet."""
    for depth in range(known + 1, len(place) + 1):
        lines.setdefault(place[:depth], line)


def _resolve(names: Where, counts: dict[Where, int], many: bool) -> Where:
    """`[steps.agent]` after two `[[steps]]` is `steps[1].agent`."""
    place: Where = ()
    for i, name in enumerate(names):
        place += (name,)
        if many and i == len(names) - 1:
            counts[place] = counts.get(place, -1) + 1
        if place in counts:
            place += (counts[place],)
    return place


def _keys(text: str, position: int) -> tuple[Where, int]:
    names: list[str] = []
    while found := _KEY.match(text, position):
        names.append(found[1].strip("\"'") if found[1][0] in "\"'" else found[1])
        position = found.end()
        if text[position : position + 1] != ".":
            break
        position += 1
    return tuple(names), position


def _skip_value(text: str, position: int, place: Where, lines: dict[Where, int]) -> int:
    """Past the value that starts here; the elements of a list written over several lines get their own."""
    depth, index, fresh = 0, 0, True
    is_list = text[_gap(text, position) : _gap(text, position) + 1] == "["
    while found := _TOKEN.match(text, position):
        token, position = found[0], found.end()
        if token == "\n" and depth == 0:
            break
        if token[0] == "#" or not token.strip():
            continue
        if token in "]}":
            depth -= 1
        elif depth == 1 and token == ",":
            index, fresh = index + 1, True
        elif depth == 1 and is_list and fresh:
            lines.setdefault((*place, index), text.count("\n", 0, found.start()) + 1)
            fresh = False
        if token in "[{":
            depth += 1
    return position


def _gap(text: str, position: int) -> int:
    found = _GAP.match(text, position)
    return found.end() if found else position
