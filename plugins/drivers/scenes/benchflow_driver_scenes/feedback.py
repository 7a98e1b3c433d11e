"""What the agent hears of a failed verification. Less is more honest: the tests are hidden."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchflow_core.contracts import SoftVerdict
from benchflow_core.errors import ConfigurationError

__all__ = ["LEVELS", "check_level", "feedback"]

LEVELS: Final = ("none", "counts", "names", "raw")
_RAW: Final = 4000
_MOST_NAMES: Final = 50
_PLAIN: Final = re.compile(r"[\w./:-]+")
_PARAMETERS: Final = re.compile(r"\s*[\[(].*", re.DOTALL)


def check_level(level: str) -> None:
    if level not in LEVELS:
        raise ConfigurationError(f"feedback '{level}' is unknown.", remedy=f"Known: {', '.join(LEVELS)}.")


def feedback(verdict: SoftVerdict, level: str) -> str:
    """A prompt for the next attempt."""
    check_level(level)
    ask = "The task is not solved yet. Find out what is wrong and fix it."
    if level == "raw" and verdict.output.strip():
        return f"{ask}\n\nThe tests said:\n{verdict.output[-_RAW:]}"
    failed = [t for t in verdict.tests if t.get("status") not in ("passed", "skipped")]
    if level in ("names", "raw") and (names := _names(failed)):
        more = f"\n- and {len(failed) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return f"{ask}\n\nFailed tests:\n" + "\n".join(f"- {name}" for name in names[:_MOST_NAMES]) + more
    if level != "none" and verdict.tests:
        good = sum(t.get("status") == "passed" for t in verdict.tests)
        return f"{ask}\n\n{good} of {len(verdict.tests)} tests pass."
    return ask


def _names(tests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Without parameters, which may hold expected values; a name that is a sentence is what the test is about."""
    names = dict.fromkeys(_PARAMETERS.sub("", str(test.get("name"))) for test in tests)
    return [name for name in names if _PLAIN.fullmatch(name)]
