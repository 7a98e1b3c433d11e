"""Session files of agents, told apart by what is in them, translated to the events of a rollout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

__all__ = ["UNKNOWN", "SessionFormat", "translator_for"]

UNKNOWN = "unknown"

Event = dict[str, Any]
Line = Mapping[str, Any]


@dataclass(frozen=True)
class SessionFormat:
    """A format: its name for people, and how a line becomes events."""

    name: str
    translate: Callable[[Line], Iterable[Event]]

    def __call__(self, line: Line) -> Iterable[Event]:
        try:
            return list(self.translate(line))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"a line of {self.name}: {type(error).__name__}"
            return [{"kind": "not_understood", "data": {"what": what, "line": line}}]


def translator_for(line: Line) -> SessionFormat:
    """By one line. What is of no known shape is shown as it is, saying that it is not understood."""
    from benchflow_command_view.sessions import acp, claude, codex

    if isinstance(line.get("kind"), str) and ("v" in line or "seq" in line):
        return SessionFormat("BenchFlow events", lambda event: [dict(event)])
    detectors: list[Callable[[Line], SessionFormat | None]] = [claude.detect, codex.detect, acp.detect]
    for detect in detectors:
        with suppress(TypeError, AttributeError):
            if found := detect(line):
                return found
    return SessionFormat(UNKNOWN, _unknown)


def _unknown(line: Line) -> Iterable[Event]:
    what = f"a line of type {str(line.get('type'))[:60]!r}"
    yield {"kind": "not_understood", "data": {"what": what, "line": line}}
