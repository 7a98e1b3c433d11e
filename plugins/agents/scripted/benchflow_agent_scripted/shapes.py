"""What a script may hold: every step, its value and what may stand beside it."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["SCRIPT", "STEPS", "TURN", "ValueRule"]


@dataclass(frozen=True)
class ValueRule:
    """A test and the words for what it wants."""

    wants: str
    test: Callable[[Any], bool]

    def problem(self, value: Any) -> str | None:
        return None if self.test(value) else f"wants {self.wants}"


@dataclass(frozen=True)
class Fields(ValueRule):
    """A mapping with these keys."""

    required: Mapping[str, ValueRule]
    optional: Mapping[str, ValueRule]

    def problem(self, value: Any) -> str | None:
        if not isinstance(value, dict):
            return f"wants {self.wants}"
        known = {**self.required, **self.optional}
        for key, item in value.items():
            if key not in known:
                return f"has an unknown key '{key}'; known: {', '.join(known)}"
            if problem := known[key].problem(item):
                return f"→ '{key}' {problem}"
        missing = [key for key in self.required if key not in value]
        return f"lacks '{missing[0]}'" if missing else None


@dataclass(frozen=True)
class Either(ValueRule):
    """The short form or the long one."""

    short: ValueRule
    long: Fields

    def problem(self, value: Any) -> str | None:
        return self.long.problem(value) if isinstance(value, dict) else self.short.problem(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except (binascii.Error, ValueError):
        return False


def _fields(required: Mapping[str, ValueRule], optional: Mapping[str, ValueRule] | None = None) -> Fields:
    names = ", ".join(required) or ", ".join(optional or {})
    return Fields(f"a mapping with {names}", lambda v: isinstance(v, dict), required, optional or {})


def _either(short: ValueRule, long: Fields) -> Either:
    return Either(f"{short.wants}, or {long.wants}", lambda v: True, short, long)


TEXT = ValueRule("text (in quotes if it looks like something else)", lambda v: isinstance(v, str))
COUNT = ValueRule("a whole number, 0 or more", lambda v: _whole(v) and v >= 0)
POSITIVE = ValueRule("a whole number, 1 or more", lambda v: _whole(v) and v >= 1)
WHOLE = ValueRule("a whole number", _whole)
EXIT = ValueRule("an exit code 0 to 255, or a signal as -1 to -64", lambda v: _whole(v) and -64 <= v <= 255)
SECONDS = ValueRule("a number of seconds", lambda v: _number(v) and 0 <= v <= 86400 * 365)
MONEY = ValueRule("a number", lambda v: _number(v) and v >= 0)
BOOL = ValueRule("true or false", lambda v: isinstance(v, bool))
ANYTHING = ValueRule("a value", lambda v: True)
MAPPING = ValueRule("a mapping", lambda v: isinstance(v, dict))
LIST = ValueRule("a list", lambda v: isinstance(v, list))
STRINGS = ValueRule("a mapping of text", lambda v: isinstance(v, dict) and all(isinstance(i, str) for i in v.values()))
REASON = ValueRule("a reason, or null to leave it out", lambda v: v is None or isinstance(v, str))

_OPTION = _fields({"optionId": TEXT, "name": TEXT, "kind": TEXT})
_OPTIONS = ValueRule(
    "a list of options with optionId, name and kind",
    lambda v: isinstance(v, list) and bool(v) and not any(_OPTION.problem(o) for o in v),
)
_ENTRY = _either(TEXT, _fields({"content": TEXT}, {"status": TEXT, "priority": TEXT}))
_PLAN = ValueRule(
    "a list of texts, or of mappings with content, status and priority",
    lambda v: isinstance(v, list) and not any(_ENTRY.problem(e) for e in v),
)
_PERMISSION = _either(BOOL, _fields({"options": _OPTIONS}))
_TOOL: Mapping[str, ValueRule] = {"title": TEXT, "kind": TEXT, "id": TEXT, "permission": _PERMISSION}
_CHILD: Mapping[str, ValueRule] = {**_TOOL, "cwd": TEXT, "env": STRINGS}
_CHUNKS: Mapping[str, ValueRule] = {"chunk": POSITIVE, "delay": SECONDS}
_TOKENS = dict.fromkeys(("input", "output", "cache_read", "cache_write", "context"), COUNT)
_GARBAGE = _fields({}, {"text": TEXT, "base64": ValueRule("base64", _base64), "repeat": COUNT, "newline": BOOL})

STEPS: Mapping[str, tuple[ValueRule, Mapping[str, ValueRule]]] = {
    "say": (TEXT, _CHUNKS),
    "think": (TEXT, _CHUNKS),
    "plan": (_PLAN, {}),
    "usage": (_fields({}, {**_TOKENS, "cost": MONEY}), {}),
    "update": (MAPPING, {}),
    "flood": (_either(COUNT, _fields({"count": COUNT}, {"text": TEXT, "kind": TEXT})), {}),
    "run": (TEXT, {**_CHILD, "timeout": SECONDS}),
    "background": (TEXT, _CHILD),
    "write": (_fields({"path": TEXT, "content": TEXT}), _TOOL),
    "read": (TEXT, _TOOL),
    "tool": (TEXT, {**_TOOL, "input": MAPPING, "server": TEXT}),
    "call": (_fields({"method": TEXT}, {"params": MAPPING}), {}),
    "elicit": (_fields({"message": TEXT}, {"properties": MAPPING}), {}),
    "wait": (SECONDS, {}),
    "hang": (BOOL, {}),
    "ignore_cancel": (BOOL, {}),
    "stop": (REASON, {}),
    "error": (_fields({"code": WHOLE, "message": TEXT}, {"data": ANYTHING}), {}),
    "crash": (EXIT, {}),
    "stderr": (TEXT, {}),
    "garbage": (_either(TEXT, _GARBAGE), {}),
    "send": (ANYTHING, {}),
    "close_stdout": (BOOL, {}),
}
TURN: Mapping[str, ValueRule] = {"match": TEXT, "steps": LIST}
SCRIPT: Mapping[str, ValueRule] = {"turns": LIST, "otherwise": LIST, "auth": TEXT}
