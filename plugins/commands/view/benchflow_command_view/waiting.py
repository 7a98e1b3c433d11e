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
_SPOKEN = ("agent_message_chunk", "agent_thought_chunk")


class Waiting:
    """Follows one log; a long one from near its end."""

    def __init__(self, log: Path) -> None:
        size = log.stat().st_size if log.exists() else 0
        self._lines = Lines(log, max(0, size - _TAIL))
        self._cut = size > _TAIL
        self._phase, self._since = "", time.time()
        self._turns: dict[Any, tuple[str, float]] = {}
        self._tools: dict[tuple[Any, Any], tuple[str, float]] = {}
        self._soft: float | None = None
        self._last = ""

    def look(self) -> dict[str, Any]:
        """`on`: what it waits on, `what`: more of it, `since`: Unix time."""
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
        turn, role = event.get("turn"), str(event.get("role") or "agent")
        call = (event.get("session"), data.get("toolCallId"))
        if kind == "phase_started":
            self._phase, self._since = str(data.get("phase")), at
        elif kind == "turn_started":
            self._turns[turn] = (role, at)
        elif kind == "turn_finished":
            self._turns.pop(turn, None)
            self._tools = {}
            self._since = at
        elif kind in ("tool_call", "tool_call_update"):
            self._tool(call, data, at)
            self._moved(turn, role, at)
        elif kind in _SPOKEN:
            self._moved(turn, role, at)
        elif kind in ("soft_verify_started", "soft_verify_finished"):
            self._soft = at if kind == "soft_verify_started" else None
        self._last = str(kind)

    def _tool(self, call: tuple[Any, Any], data: Mapping[str, Any], at: float) -> None:
        if data.get("status") in ("completed", "failed", "cancelled"):
            self._tools.pop(call, None)
        else:
            title, since = self._tools.get(call, ("", at))
            self._tools[call] = (str(data.get("title") or title or data.get("kind") or "a tool")[:200], since)

    def _moved(self, turn: Any, role: str, at: float) -> None:
        self._turns[turn] = (self._turns.get(turn, (role, at))[0], at)

    def _state(self) -> dict[str, Any]:
        if self._soft is not None:
            return {"on": "verifier", "what": "verification for the agent", "since": self._soft}
        if self._tools:
            title, since = list(self._tools.values())[-1]
            return {"on": "tool", "what": title, "since": since, "others": len(self._tools) - 1}
        if self._turns:
            role, since = max(self._turns.values(), key=lambda one: one[1])
            what = f"{role} is writing" if self._last in _SPOKEN else f"an answer for {role}"
            return {"on": "model", "what": what, "since": since, "others": len(self._turns) - 1}
        on = "verifier" if self._phase == "verify" else "sandbox" if self._phase in ("start", "cleanup") else "agent"
        return {"on": on, "what": _PHASES.get(self._phase, self._phase or "its turn"), "since": self._since}
