"""Collects what is wrong or worth saying about a config file, each with its line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import TaskError

Where = tuple[str | int, ...]
"""A place in a config: `("steps", 0, "agent", "user")`."""


def dotted(where: Where) -> str:
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing that is wrong."""

    where: Where
    message: str
    remedy: str = ""
    code: str = "invalid"


@dataclass
class Report:
    """Problems stop the load once everything was read; notices do not."""

    file: Path
    line_of: Callable[[Where], int | None]
    """Asked only when something is to be said: finding a line costs another pass over the file."""
    strict: bool
    """BenchFlow's rules: an unknown key is an error, limits are above zero. Harbor's take almost anything."""
    problems: list[ConfigProblem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    spelled: dict[Where, str] = field(default_factory=dict)
    """Places whose key was written under another name: messages and lines use what the author wrote."""
    unknown_keys: list[Where] = field(default_factory=list)
    extensions: set[Where] = field(default_factory=set)
    """Keys that were read although the format's own runner does not know them."""

    def problem(self, where: Where, message: str, *, remedy: str = "", code: str = "invalid") -> None:
        self.problems.append(ConfigProblem(where, message, remedy, code))

    def notice(self, where: Where, message: str) -> None:
        line = self.line_of(where) if where else None
        self.notices.append(f"{self.file}:{line}: {message}" if line else f"{self.file}: {message}")

    def unknown(self, where: Where, known: Iterable[str]) -> None:
        self.unknown_keys.append(where)
        key = str(where[-1])
        near = difflib.get_close_matches(key, list(known), 1, 0.6)
        if self.strict:
            remedy = f"Did you mean '{near[0]}'?" if near else "Remove it, or put your own data under metadata."
            self.problem(where, f"unknown key '{dotted(where)}'", remedy=remedy, code="unknown-key")
        else:
            hint = f" (nearest: '{near[0]}')" if near else ""
            self.notice(where, f"unknown key '{dotted(where)}' is ignored{hint}")

    def raise_first(self) -> None:
        """One `TaskError` for everything: its message is the first problem, `details["problems"]` has all."""
        if not self.problems:
            return
        found = sorted(((self.line_of(p.where), p) for p in self.problems), key=lambda entry: entry[0] or 0)
        line, first = found[0]
        where = f"{self.file}:{line}" if line else str(self.file)
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        listed = [{"line": n, "message": p.message, "remedy": p.remedy, "code": p.code} for n, p in found]
        details = {"file": str(self.file), "line": line, "code": first.code, "problems": listed}
        raise TaskError(f"{where}: {first.message}{more}.", remedy=first.remedy or None, details=details)
