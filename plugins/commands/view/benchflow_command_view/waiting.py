"""Who is waiting on what, told from the end of a running rollout's event log."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchflow_command_view.clock import seconds_of
from benchflow_command_view.steps.lines import Lines

__all__ = ["Waiting"]

_TAIL = 512 << 10
_PHASES = {
    "setup": "the task is being set up",
    "start": "the sandbox is starting",
    "install_agent": "the agent is being installed",
    "execute": "the agent is being launched",
    "verify": "the verifier",
    "cleanup": "the sandbox is being taken down",
}
_ANSWERED = ("permission_request", "elicitation_request")
_SPOKEN = ("agent_message_chunk", "agent_thought_chunk")


class Waiting:
    """Follows one log; a long one from near its end."""

    def __init__(self, log: Path) -> None:
        size = log.stat().st_size if log.exists() else 0
        self._lines = Lines(log, max(0, size - _TAIL))
        self._cut = size > _TAIL
        self._phase, self._since = "", time.time()
        self._turns: dict[str, tuple[str, float]] = {}
        self._tools: dict[tuple[str, str], tuple[str, str, float]] = {}
        """By turn and call: who, what, since when."""
        self._questions: dict[str, tuple[str, float]] = {}
        """Of a turn, to the user: what, since when."""
        self._ended: set[str] = set()
        self._soft: float | None = None
        self._writing: str | None = None

    def look(self) -> dict[str, Any]:
        """`on`: what it waits on, `what`: more of it, `who`: the role that waits, `since`: Unix time. `also`: the same
        of other roles that are at work."""
        for line in self._lines.new():
            if self._cut:  # the first one read may be the end of a longer one
                self._cut = False
                continue
            self._hear(line)
        return self._state()

    def _hear(self, event: Mapping[str, Any]) -> None:
        kind, data = event.get("kind"), event.get("data")
        at = seconds_of(event.get("time")) or time.time()
        if not isinstance(data, Mapping):
            return
        turn, role = str(event.get("turn")), str(event.get("role") or "agent")
        if kind == "phase_started":
            self._phase, self._since = str(data.get("phase")), at
        elif kind == "turn_started":
            self._turns[turn] = (role, at)
        elif kind == "turn_finished":
            self._turns.pop(turn, None)
            self._ended.add(turn)
            self._tools = {key: one for key, one in self._tools.items() if key[0] != turn}
            self._questions.pop(turn, None)
            self._since = at
        elif kind in ("tool_call", "tool_call_update") and turn not in self._ended:
            self._tool((turn, str(data.get("toolCallId"))), role, data, at)
            self._moved(turn, role, at)
        elif kind == "question_open" and turn not in self._ended:
            self._questions[turn] = (f"{data.get('about')}: {str(data.get('what'))[:200]}", at)
            self._moved(turn, role, at)
        elif kind in _ANSWERED and turn not in self._ended:
            self._questions.pop(turn, None)
            self._moved(turn, role, at)
        elif kind in _SPOKEN and turn not in self._ended:
            self._moved(turn, role, at)
            self._writing = turn
        elif kind in ("soft_verify_started", "soft_verify_finished"):
            self._soft = at if kind == "soft_verify_started" else None
        if kind not in _SPOKEN and turn == self._writing:
            self._writing = None

    def _tool(self, call: tuple[str, str], role: str, data: Mapping[str, Any], at: float) -> None:
        if data.get("status") in ("completed", "failed", "cancelled"):
            self._tools.pop(call, None)
        else:
            _, title, since = self._tools.get(call, (role, "", at))
            self._tools[call] = (role, str(data.get("title") or title or data.get("kind") or "a tool")[:200], since)

    def _moved(self, turn: str, role: str, at: float) -> None:
        self._turns[turn] = (self._turns.get(turn, (role, at))[0], at)

    def _state(self) -> dict[str, Any]:
        if self._soft is not None:
            return {"on": "verifier", "what": "verification for the agent", "since": self._soft}
        if self._turns:
            first, *rest = sorted(map(self._turn, self._turns), key=lambda one: -one["since"])
            return {**first, **({"also": rest[:8]} if rest else {})}
        on = "verifier" if self._phase == "verify" else "sandbox" if self._phase in ("start", "cleanup") else "agent"
        return {"on": on, "what": _PHASES.get(self._phase, self._phase or "its turn"), "since": self._since}

    def _turn(self, turn: str) -> dict[str, Any]:
        role, since = self._turns[turn]
        if turn in self._questions:
            what, since = self._questions[turn]
            return {"on": "user", "what": what, "who": role, "since": since, "others": 0}
        tools = [one for key, one in self._tools.items() if key[0] == turn]
        if tools:
            _, title, since = tools[-1]
            return {"on": "tool", "what": title, "who": role, "since": since, "others": len(tools) - 1}
        what = "it is writing" if turn == self._writing else "an answer"
        return {"on": "model", "what": what, "who": role, "since": since, "others": 0}
