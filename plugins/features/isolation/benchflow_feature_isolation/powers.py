"""The table of powers, `powers.toml`: files through which one user of a box steers what another runs there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final

from benchflow_core.contracts import Change

__all__ = ["BadGlob", "Power", "Table", "compile_glob", "load_table"]

_EXECUTABLE: Final = 0o111
_TYPES: Final = frozenset(("file", "link", "program", "gone"))
_TOKEN = re.compile(r"(\*\*/)|(/\*\*$)|(\*(?!\*))|(\?)|(\[[^\]/]+\])|([{])|([,}])|(/|[^*?\[{},/]+)")


class BadGlob(ValueError):
    """A row of the table that cannot be understood."""


@dataclass(frozen=True, slots=True)
class Power:
    """One row: what steers, why, and how an agent's change there is undone. Or a place of programs and libraries."""

    id: str
    why: str
    paths: tuple[str, ...]
    but: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("added", "modified", "deleted")
    types: tuple[str, ...] = ("file", "link", "gone")
    env: Mapping[str, str] = field(default_factory=dict)
    covers: str = "row"
    anywhere: bool = False
    """Of a place of programs: also below the working directory."""

    def concerns(self, change: Change) -> bool:
        """Tell whether kind and type of a change are the row's; the globs are matched elsewhere."""
        if change.kind not in self.kinds:
            return False
        if change.kind == "deleted":
            return "gone" in self.types
        if change.type == "dir":
            return False
        program = change.type == "link" or (change.type == "file" and bool(change.mode & _EXECUTABLE))
        kind = "link" if change.type == "link" else "file"
        return kind in self.types or ("program" in self.types and program)


@dataclass(frozen=True)
class Table:
    """All rows, compiled for one home and one working directory."""

    powers: tuple[Power, ...]
    programs: tuple[Power, ...]
    searches: Mapping[str, Mapping[str, str]]
    """What is searched for, to `id` and `why`."""
    rules: Mapping[str, Mapping[str, str]]
    """What no glob can say, by `id`."""
    home: str
    workdir: str

    @cached_property
    def _powers(self) -> _Matcher:
        return _Matcher(self.powers, self.home, self.workdir)

    @cached_property
    def _programs(self) -> _Matcher:
        return _Matcher(self.programs, self.home, self.workdir)

    def power(self, change: Change) -> Power | None:
        """Return the first row that the change falls under."""
        return next((row for row in self._powers.rows(change.path) if row.concerns(change)), None)

    def of_the_image(self, path: str, *, in_work: bool) -> Power | None:
        """Return the place of programs and libraries that a path lies in."""
        return next((row for row in self._programs.rows(path) if row.anywhere or not in_work), None)


class _Matcher:
    """Finds rows by path. One question for all of them answers for most paths, which no row concerns."""

    def __init__(self, rows: Sequence[Power], home: str, workdir: str) -> None:
        self._rows: list[tuple[Power, _Globs, _Globs, _Globs | None]] = []
        for row in rows:
            ends = _Globs([f"**/{name}" for name in row.names], home, workdir) if row.names else None
            self._rows.append((row, _Globs(row.paths, home, workdir), _Globs(row.but, home, workdir), ends))
        self._all = _Globs([glob for row in rows for glob in row.paths], home, workdir)

    def rows(self, path: str) -> Iterable[Power]:
        if not self._all.match(path):
            return
        for row, paths, but, ends in self._rows:
            if paths.match(path) and not but.match(path) and (ends is None or ends.match(path)):
                yield row


class _Globs:
    """Several globs as two expressions: those for a name anywhere do not look at the folders, which is much faster."""

    def __init__(self, globs: Sequence[str], home: str, workdir: str) -> None:
        names = [glob[3:] for glob in globs if glob.startswith("**/") and "/" not in glob[3:]]
        paths = [glob for glob in globs if glob.removeprefix("**/") not in names]
        self._names = re.compile("|".join(map(_translate, names)) or "(?!)", re.DOTALL)
        self._paths = re.compile("|".join(_expression(glob, home, workdir) for glob in paths) or "(?!)", re.DOTALL)

    def match(self, path: str) -> bool:
        found = self._names.fullmatch(path.rpartition("/")[2]) or self._paths.fullmatch(path)
        return found is not None


def compile_glob(glob: str, home: str = "/root", workdir: str = "/app") -> re.Pattern[str]:
    """Return the expression that a path has to match as a whole. `BadGlob` names what cannot be understood."""
    return re.compile(_expression(glob, home, workdir), re.DOTALL)


def _expression(glob: str, home: str, workdir: str) -> str:
    for mark, place in (("~/", home), ("./", workdir)):
        if glob.startswith(mark):
            return re.escape(place.rstrip("/")) + _translate(f"/{glob[2:]}")
    return _translate(glob)


def _translate(glob: str) -> str:
    found, at, depth = [], 0, 0
    while at < len(glob):
        token = _TOKEN.match(glob, at)
        if token is None:
            raise BadGlob(f"{glob!r}: the character at {at + 1} cannot be understood")
        folders, below, star, one, group, opened, closed, text = token.groups()
        depth += bool(opened) - (closed == "}")
        if depth < 0 or (closed == "," and not depth):
            raise BadGlob(f"{glob!r}: braces do not match")
        if group:
            found.append(group)
        elif text:
            found.append(re.escape(text))
        else:
            plain = {"{": "(?:", ",": "|", "}": ")"}.get(opened or closed or "", "")
            found.append("(?:.*/)?" if folders else "/.+" if below else "[^/]*" if star else "[^/]" if one else plain)
        at = token.end()
    if depth:
        raise BadGlob(f"{glob!r}: braces do not match")
    return "".join(found)


@cache
def load_table(home: str, workdir: str) -> Table:
    """Return the table for a verifier's home and working directory."""
    text = resources.files(__package__).joinpath("powers.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    powers = tuple(Power(**_tuples(row)) for row in data["power"])
    for row in powers:
        if row.covers not in ("row", "name", "file") or not _TYPES.issuperset(row.types):
            raise BadGlob(f"row {row.id!r}: 'covers' or 'types' cannot be understood")
    programs = tuple(Power("program", **_tuples(row)) for row in data["programs"])
    searches = {row["what"]: {"id": row["id"], "why": row["why"]} for row in data["search"]}
    rules = {row["id"]: row for row in data["rule"]}
    return Table(powers, programs, searches, rules, home.rstrip("/"), workdir.rstrip("/"))


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
