"""What replaceAllText looks for; a regular expression that could run for ever is refused."""

from __future__ import annotations

import re
from typing import Any

from benchflow_service_claw_gdoc.model.tree import EditError

__all__ = ["safe_pattern"]

_MANY = 16


def safe_pattern(text: str, regex: bool, match_case: bool) -> re.Pattern[str]:
    flags = 0 if match_case else re.IGNORECASE
    if not regex:
        return re.compile(re.escape(text), flags)
    try:
        pattern = re.compile(text, flags)
        parsed = re._parser.parse(text)  # type: ignore[attr-defined]
    except (re.error, OverflowError, RecursionError) as error:
        raise EditError(f"Invalid regular expression: {error}") from None
    if _risky(parsed, False):
        raise EditError("Invalid regular expression: repetitions of repetitions and references back are not supported.")
    return pattern


def _risky(items: Any, inside: bool) -> bool:
    """RE2 has no references back and never backtracks; Python does, so nested repetition is refused."""
    for op, argument in items:
        name = str(op)
        if name in ("GROUPREF", "GROUPREF_EXISTS", "ASSERT", "ASSERT_NOT"):
            return True
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            many = argument[1] > _MANY
            if (many and inside) or _risky(argument[2], inside or many):
                return True
        elif (
            (name == "SUBPATTERN" and _risky(argument[3], inside))
            or (name == "BRANCH" and ((inside and len(argument[1]) > 1) or any(_risky(b, inside) for b in argument[1])))
            or (name == "ATOMIC_GROUP" and _risky(argument, inside))
        ):
            return True
    return False
