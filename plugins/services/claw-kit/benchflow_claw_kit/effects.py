"""Which test shows the effect of which method, and through which other method the official client sees it.

    @shows("labels.create labels.patch > labels.get", "watch > state")
    def test_labels(ann): ...

says: after `labels.create` a call of `labels.get` shows what it did, and this test asserts it. Names are without the
API's prefix. A method on either side counts as shown: a read that shows a write is itself seen to work. `state` is the
admin channel, for the few effects that the API itself has no method to see. The service's log of calls is looked at
after the test: what a line claims and did not happen, in this order, fails it. `#insertText` is a request inside a
batch of Docs, which the log names behind the path. The tables of docs/services are made
from these lines, read from the source.
"""

from __future__ import annotations

import ast
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["STATE", "CallLog", "checked", "effects_in", "missed", "pairs", "shows"]

STATE = "state"
F = TypeVar("F", bound=Callable[..., Any])


def shows(*lines: str) -> Callable[[F], F]:
    def mark(test: F) -> F:
        test.__dict__["effects"] = lines
        return test

    return mark


def pairs(line: str) -> Iterator[tuple[str, str]]:
    written, arrow, seen = (part.strip() for part in line.partition(">"))
    if not arrow or not written or len(seen.split()) != 1:
        raise ValueError(f"{line!r}: write it as 'method method > method'")
    for one in written.split():
        yield one, seen


def effects_in(folder: Path) -> dict[str, tuple[str, str]]:
    """Method to the one on the other side and the test's name, of all tests in a folder."""
    found: dict[str, tuple[str, str]] = {}
    shown: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.glob("test_*.py")):
        for test, line in _lines(path):
            for written, seen in pairs(line):
                found.setdefault(written, (seen, test))
                shown.setdefault(seen, (written, test))
    return {**{name: where for name, where in shown.items() if name != STATE}, **found}


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.parse(path.read_text()).body:
        for one in getattr(node, "decorator_list", []):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "shows":
                for line in one.args:
                    yield node.name, ast.literal_eval(line)  # type: ignore[attr-defined]


def checked(prefix: str) -> Any:
    """For a conftest: after each test with such lines, what they claim is looked up in the log of its `server`."""
    import pytest

    @pytest.fixture(autouse=True)
    def effects_are_seen(request: pytest.FixtureRequest) -> Iterator[None]:
        lines = getattr(request.function, "effects", ())
        calls = CallLog(request.getfixturevalue("server").db, prefix) if lines else None
        yield
        if calls and (wrong := missed(lines, calls.since())):
            pytest.fail(f"claimed by @shows, but not called in this order: {', '.join(wrong)}")

    return effects_are_seen


class CallLog:
    """What a service was asked while a test ran, from its own log."""

    def __init__(self, db: Path, prefix: str) -> None:
        self.db = db
        self.prefix = prefix
        self.start = len(self._rows())

    def _rows(self) -> list[tuple[str, int]]:
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as db:
            rows = db.execute("SELECT method, status, refused, path FROM _calls ORDER BY rowid").fetchall()
        found = []
        for method, status, refused, path in rows:
            names = [str(method).removeprefix(self.prefix), *(word for word in path.split(" ") if word[:1] == "#")]
            found += [(name, 400 if refused else int(status)) for name in names]
        return found

    def since(self) -> list[tuple[str, int]]:
        return self._rows()[self.start :]


def missed(lines: tuple[str, ...], calls: list[tuple[str, int]]) -> list[str]:
    """Pairs that did not happen: the first method answered, then the second one was asked."""
    wrong = []
    for line in lines:
        for written, seen in pairs(line):
            at = next((n for n, (name, status) in enumerate(calls) if name == written and status < 400), None)
            later = {name for name, _ in calls[at + 1 :]} if at is not None else set()
            if at is None or (seen != STATE and seen not in later):
                wrong.append(f"{written} > {seen}")
    return wrong
