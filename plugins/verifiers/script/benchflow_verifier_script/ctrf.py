"""Single test outcomes out of a CTRF report, which pytest and other runners can write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal

from benchflow_core.contracts import TestOutcome

__all__ = ["read_outcomes"]

_MOST_BYTES: Final = 8 * 1024 * 1024
_MOST: Final = 5000
_MESSAGE: Final = 2000

Status = Literal["passed", "failed", "skipped", "error"]
_STATUS: Final[dict[str, Status]] = {"passed": "passed", "failed": "failed", "skipped": "skipped", "pending": "skipped"}


def read_outcomes(path: Path) -> tuple[TestOutcome, ...]:
    """The tests of a report, in order; nothing where there is none, or what is there is no report."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return ()
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return ()
    results = data.get("results") if isinstance(data, dict) else None
    tests = results.get("tests") if isinstance(results, dict) else None
    return tuple(_outcome(test) for test in tests[:_MOST] if isinstance(test, dict)) if isinstance(tests, list) else ()


def _outcome(test: dict[str, Any]) -> TestOutcome:
    message = test.get("message") or test.get("trace") or ""
    status = _STATUS.get(str(test.get("status")), "error")
    return TestOutcome(name=str(test.get("name", ""))[:500], status=status, message=str(message)[:_MESSAGE])
