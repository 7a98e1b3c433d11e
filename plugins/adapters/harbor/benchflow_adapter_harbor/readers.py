"""Readers for config values. They take what Harbor's models take: numbers in quotes, whole floats as integers.

pydantic is not used here: a validator of its does not know where its value stands, and these must report notices
with a line for values that are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING as MISSING_DEFAULT
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from benchflow_adapter_harbor.report import Report, Where, dotted

Reader = Callable[[Any, Where, Report], Any]
EXTENSION: Final = object()
"""In `Annotated`: a key that the format's own runner does not know. What reads oddly there does not stop the task."""

NO_LIMIT = 1e9
"""Thirty years, for `inf`: results are JSON, which has no infinity."""

_INT64 = 2.0**63
_TRUE = {"1", "true", "t", "yes", "y", "on"}
_FALSE = {"0", "false", "f", "no", "n", "off"}


class MissingValue:
    """What a reader gives back after reporting a problem: the field keeps its default."""


MISSING = MissingValue()


def wrong(value: Any, where: Where, report: Report, expected: str) -> MissingValue:
    shown = repr(value)
    if len(shown) > 60:
        shown = shown[:57] + "…"
    report.problem(where, f"{dotted(where)} must be {expected}, got {shown}")
    return MISSING


def text(value: Any, where: Where, report: Report) -> Any:
    return value if isinstance(value, str) else wrong(value, where, report, "text in quotes")


def filled_text(value: Any, where: Where, report: Report) -> Any:
    return value if isinstance(value, str) and value else wrong(value, where, report, "text that is not empty")


def number(value: Any, where: Where, report: Report) -> Any:
    try:
        if isinstance(value, int | float | str):
            return float(value)
    except (ValueError, OverflowError):
        pass
    return wrong(value, where, report, "a number")


def seconds(value: Any, where: Where, report: Report) -> Any:
    """A stretch of time. Harbor takes any number; not-a-number is no time at all."""
    found = number(value, where, report)
    if isinstance(found, float) and math.isnan(found):
        return wrong(value, where, report, "a number of seconds")
    return found


def limit(value: Any, where: Where, report: Report) -> Any:
    """A time limit. Infinity is no limit; under Harbor's rules zero and less end the phase at once."""
    found = seconds(value, where, report)
    if not isinstance(found, float) or 0 < found < math.inf:
        return found
    if report.strict:
        return wrong(value, where, report, "a number of seconds above zero")
    if found > 0:
        return NO_LIMIT
    report.notice(where, f"{dotted(where)} = {found:g} leaves no time at all")
    return found


def integer(value: Any, where: Where, report: Report) -> Any:
    try:
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < _INT64:
            return int(value)
        if isinstance(value, str):
            head, dot, tail = value.strip().partition(".")
            if not dot or set(tail) == {"0"}:
                return int(head)
    except (ValueError, OverflowError):
        pass
    return wrong(value, where, report, "a whole number")


def boolean(value: Any, where: Where, report: Report) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    return wrong(value, where, report, "true or false")


def user(value: Any, where: Where, report: Report) -> Any:
    """A name or a uid; always text afterwards."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < _INT64):
        return str(int(value))
    return wrong(value, where, report, "a user name or a uid")


def one_of(*values: str, fold: bool = False) -> Reader:
    def read(value: Any, where: Where, report: Report) -> Any:
        found = value.lower() if fold and isinstance(value, str) else value
        return found if isinstance(found, str) and found in values else wrong(value, where, report, " or ".join(values))

    return read


def any_table(value: Any, where: Where, report: Report) -> Any:
    return value if isinstance(value, Mapping) else wrong(value, where, report, "a table")


def list_of(item: Reader, *, nonempty: bool = False) -> Reader:
    def read(value: Any, where: Where, report: Report) -> Any:
        if not isinstance(value, list) or (nonempty and not value):
            return wrong(value, where, report, "a list that is not empty" if nonempty else "a list")
        found = [item(entry, (*where, i), report) for i, entry in enumerate(value)]
        return tuple(entry for entry in found if entry is not MISSING)

    return read


def text_table(value: Any, where: Where, report: Report) -> Any:
    """Names to text, for environment variables."""
    if not isinstance(value, Mapping):
        return wrong(value, where, report, "a table of text values")
    found = {}
    for key, entry in value.items():
        if not isinstance(key, str):
            report.problem(where, f"{dotted(where)} has a name that is not text: {key!r}")
        elif not isinstance(entry, str):
            wrong(entry, (*where, key), report, 'text in quotes, e.g. "1"')
        else:
            found[key] = entry
    return found


def optional(inner: Reader) -> Reader:
    def read(value: Any, where: Where, report: Report) -> Any:
        return None if value is None else inner(value, where, report)

    return read


@cache
def reader_of(hint: Any) -> Reader:
    """Return the reader for a type: what `Annotated` names, a dataclass as a table, or the plain reader of the type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        named = [found for found in args[1:] if found is not EXTENSION]
        return named[0] if named else reader_of(args[0])
    if origin in (Union, UnionType):
        return optional(reader_of(args[0]))
    if origin is tuple:
        return list_of(reader_of(args[0]))
    if origin is Mapping:
        return text_table if args[1] is str else any_table
    return _PLAIN[hint] if hint in _PLAIN else _table(hint)


_PLAIN: Final[Mapping[Any, Reader]] = {str: text, bool: boolean, int: integer, float: seconds}


def _table(made: Any) -> Reader:
    """Read a table into a dataclass: known keys through their readers, absent ones by the dataclass's defaults.

    The class may have `short`, the one key that plain text stands for; `prepare(data, where, report)`, which rewrites
    the table first; and `check(where, report)`, which is called on the result.
    """
    hints = get_type_hints(made, include_extras=True)
    names = [one.name for one in fields(made)]
    readers = {name: reader_of(hints[name]) for name in names}
    extra = {name for name in names if EXTENSION in get_args(hints[name])}
    required = [one.name for one in fields(made) if one.default is MISSING_DEFAULT is one.default_factory]
    prepare, check, short = (getattr(made, name, None) for name in ("prepare", "check", "short"))

    def read(value: Any, where: Where, report: Report) -> Any:
        value = {short: value} if short and isinstance(value, str) else value
        if not isinstance(value, Mapping):
            return wrong(value, where, report, "a table")
        data = {key: entry for key, entry in value.items() if isinstance(key, str)}
        for key in value.keys() - data.keys():
            report.problem(where, f"{dotted(where) or 'the document'} has a key that is not text: {key!r}")
        if prepare is not None:
            data = prepare(data, where, report)
        found: dict[str, Any] = {}
        for key, entry in data.items():
            at = (*where, report.spelled.get((*where, key), key))
            if key not in readers:
                report.unknown(at, names)
                continue
            got = (_extension if key in extra else _plain)(readers[key], entry, at, report)
            if got is not MISSING:
                found[key] = got
        for key in required:
            if key not in data:
                report.problem(where, f"{dotted((*where, key))} is missing", code="missing-key")
        if any(key not in found for key in required):
            return MISSING
        table = made(**found)
        if check is not None:
            check(table, where, report)
        return table

    return read


def _plain(reader: Reader, entry: Any, at: Where, report: Report) -> Any:
    return reader(entry, at, report)


def _extension(reader: Reader, value: Any, where: Where, report: Report) -> Any:
    """A key beyond the format: what its own runner ignores must not stop the task here when it reads oddly."""
    if report.strict:
        return reader(value, where, report)
    trial = Report(report.file, report.line_of, strict=True)
    got = reader(value, where, trial)
    for found in trial.problems:
        report.notice(found.where, f"{found.message}; the key is ignored")
    if trial.problems:
        return MISSING
    report.extensions.add(where)
    return got
