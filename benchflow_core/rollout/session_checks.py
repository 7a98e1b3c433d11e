"""Check what an agent reports: the updates of its session and the end of its turns.

An agent may be hostile, and what it reports is counted, stored and shown. The tables name the fields that we read, by
kind of update; everything else is kept as it came. A missing field, and null, are always allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from benchflow_core.contracts.agents import PromptOutcome, SessionEvent
from benchflow_core.errors import AgentProtocolError
from benchflow_core.quick import dataclass
from benchflow_core.results.numbers import is_number

__all__ = ["check_outcome", "check_update"]

_MOST_TOKENS: Final = 2**53
_MOST_DOLLARS: Final = 1e9


@dataclass(frozen=True)
class _Rule:
    """What a field has to be: in words, and as a test."""

    wanted: str
    holds: Callable[[Any], bool]


def _text(limit: int) -> _Rule:
    return _Rule(f"text of at most {limit} characters", lambda value: isinstance(value, str) and len(value) <= limit)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


_NAME: Final = _text(64)
_ID: Final = _text(64 * 1024)
_TITLE: Final = _text(1024 * 1024)
_OBJECT: Final = _Rule("an object", _is_object)
_OBJECTS: Final = _Rule(
    "a list of objects", lambda value: isinstance(value, list | tuple) and all(map(_is_object, value))
)
_COUNT: Final = _Rule("a number from 0 to 2^53", lambda value: is_number(value, 0, _MOST_TOKENS))
_MONEY: Final = _Rule("a number from 0 to 1e9", lambda value: is_number(value, 0, _MOST_DOLLARS))

_CALL: Final = {
    "toolCallId": _ID,
    "title": _TITLE,
    "kind": _NAME,
    "status": _NAME,
    "content": _OBJECTS,
    "locations": _OBJECTS,
}
_CHUNK: Final = {"content": _OBJECT}
_UPDATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "agent_message_chunk": _CHUNK,
    "agent_thought_chunk": _CHUNK,
    "user_message_chunk": _CHUNK,
    "tool_call": _CALL,
    "tool_call_update": _CALL,
    "permission_request": {"toolCall": _CALL, "options": _OBJECTS},
    "plan": {"entries": _OBJECTS},
    "usage_update": {"used": _COUNT, "size": _COUNT, "cost": {"amount": _MONEY, "currency": _NAME}},
}
_TOKENS: Final = (
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "cachedReadTokens",
    "cachedWriteTokens",
    "thoughtTokens",
)
_ANSWER: Final = {"stopReason": _NAME, "usage": dict.fromkeys(_TOKENS, _COUNT)}
_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")
_USAGE: Final = {**dict.fromkeys(_COUNTS, _COUNT), "cost_usd": _MONEY}


def check_update(event: SessionEvent) -> None:
    """Raise `AgentProtocolError` where an update of a session is not what the protocol allows."""
    if (fields := _UPDATES.get(event.kind)) is not None:
        _check(event.kind, event.data, fields)


def check_outcome(outcome: PromptOutcome) -> None:
    """Raise `AgentProtocolError` where the end of a turn is not what the protocol allows."""
    _check("the answer to session/prompt", outcome.data, _ANSWER)
    if outcome.usage is not None:
        _check("the usage of the turn", asdict(outcome.usage), _USAGE)


def _check(where: str, data: Any, fields: Mapping[str, Any]) -> None:
    for name, rule in fields.items():
        value = data.get(name)
        if value is None:
            continue
        nested = isinstance(rule, Mapping)
        wrong = _OBJECT if nested and not _is_object(value) else None if nested or rule.holds(value) else rule
        if wrong is not None:
            raise AgentProtocolError(
                f"the agent broke its protocol: in {where}, '{name}' is {_shown(value)}, not {wrong.wanted}.",
                details={"in": where, "field": name},
            )
        if nested:
            _check(f"{where}.{name}", value, rule)


def _shown(value: Any) -> str:
    """Return the value, or only its type where it is long."""
    text = "a huge integer" if isinstance(value, int) and not is_number(value) else repr(value)
    return text if len(text) <= 40 else f"{type(value).__name__} {text[:30]}…"
