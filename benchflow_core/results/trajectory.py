"""The ACP trajectory, derived from the event log: chunks joined, tool calls merged with their updates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

__all__ = ["CHUNKS", "CONCERNED", "Counts", "trajectory", "with_text"]

CHUNKS: Final = {
    "agent_message_chunk": "agent_message",
    "agent_thought_chunk": "agent_thought",
    "user_message_chunk": "user_message",
}
_CALLS = ("tool_call", "tool_call_update", "permission_request")
_SAID = ("error", "notice", "plan", "usage_update")
_KINDS = (*CHUNKS, *_CALLS, *_SAID, "skill_invoked", "turn_started", "turn_finished")
CONCERNED: Final = re.compile(rf'"kind": ?"(?:{"|".join(_KINDS)})"'.encode())
"""In the line of every event that a trajectory is made from, and in few others."""
_WHERE = ("scene", "role", "turn", "session")
_NEW_CALL: Mapping[str, Any] = {"kind": "other", "title": "", "status": "pending", "content": []}
_CALL_FIELDS = {
    "kind": "kind",
    "title": "title",
    "status": "status",
    "content": "content",
    "rawInput": "raw_input",
    "rawOutput": "raw_output",
    "locations": "locations",
}


def trajectory(events: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Entries in the order they began. One turn's are held at a time: a call is whole only when its turn is over."""
    turn = _Turn()
    for event in events:
        kind, data = event["kind"], event.get("data") or {}
        if kind in CHUNKS:
            turn.say(event, CHUNKS[kind], _text_of(data))
        elif kind in _CALLS:
            turn.call(event, data)
        elif kind == "skill_invoked":
            turn.skill(data)
        elif kind == "turn_started":
            yield from turn.end()
            yield {"type": "user_message", "text": data.get("prompt", ""), **_place(event)}
        elif kind == "turn_finished":
            yield from turn.end()
        elif kind in _SAID:
            turn.entries.append({"type": kind, **data, **_place(event)})
    yield from turn.end()


class _Turn:
    """What has been said and done since the prompt."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}
        self._text: list[str] = []
        self._terminals: dict[str, list[str]] = {}
        """What adapters of agents send piece by piece of a call's output, where the call itself never has it."""

    def end(self) -> Iterable[dict[str, Any]]:
        self._close_text()
        for call_id, parts in self._terminals.items():
            self._calls[call_id].setdefault("raw_output", {"stdout": "".join(parts)})
        entries, self.entries, self._calls, self._terminals = self.entries, [], {}, {}
        return entries

    def say(self, event: Mapping[str, Any], kind: str, text: str) -> None:
        last = self.entries[-1] if self.entries and self._text else None
        if last is None or last["type"] != kind or any(last.get(k) != event.get(k) for k in _WHERE):
            self._close_text()
            self.entries.append({"type": kind, "text": "", **_place(event)})
        self._text.append(text)

    def _close_text(self) -> None:
        """Parts are joined once: a long message in small chunks costs no more than a short one in one."""
        if self._text:
            last = next(e for e in reversed(self.entries) if e["type"] in CHUNKS.values())
            last["text"] = "".join(self._text)
            self._text = []

    def call(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """An update may come without its call: a permission request is then all there is of it."""
        update = data.get("toolCall") if event["kind"] == "permission_request" else data
        if not isinstance(update, Mapping):
            return
        self._close_text()
        call_id = str(update.get("toolCallId", f"call-{len(self._calls) + 1}"))
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = {"type": "tool_call", "tool_call_id": call_id, **_NEW_CALL, **_place(event)}
            self.entries.append(call)
        for source, target in _CALL_FIELDS.items():
            if update.get(source) is not None:
                call[target] = update[source]
        meta = update.get("_meta")
        output = meta.get("terminal_output") if isinstance(meta, Mapping) else None
        if isinstance(output, Mapping) and isinstance(output.get("data"), str):
            self._terminals.setdefault(call_id, []).append(output["data"])
        if "skill" in call:
            call["kind"] = "skill"
        if call["status"] in ("completed", "failed"):
            call["finished"] = event.get("time")

    def skill(self, data: Mapping[str, Any]) -> None:
        """Whatever kind the agent gives the call, here it is a skill's."""
        if (call := self._calls.get(str(data.get("toolCallId")))) is not None:
            call["kind"], call["skill"] = "skill", data.get("skill")


def with_text(data: Mapping[str, Any], change: Callable[[str], str]) -> Mapping[str, Any]:
    """A chunk with its text changed."""
    content = data.get("content")
    if not isinstance(content, Mapping) or not isinstance(content.get("text"), str):
        return data
    text = change(content["text"])
    return data if text == content["text"] else {**data, "content": {**content, "text": text}}


def _text_of(data: Mapping[str, Any]) -> str:
    content = data.get("content")
    if isinstance(content, Mapping):
        return str(content.get("text") or f"[{content.get('type', 'content')}]")
    return str(data.get("text", ""))


def _place(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"time": event.get("time"), **{k: event[k] for k in _WHERE if k in event}}


class Counts:
    """Running totals a result needs, so that nobody reads the log again."""

    __slots__ = ("_calls", "by_turn", "prompts")

    def __init__(self) -> None:
        self._calls: set[str] = set()
        self.prompts = 0
        self.by_turn: dict[Any, int] = {}
        """Tool calls by turn: of two turns at a time, each has its own."""

    @property
    def tool_calls(self) -> int:
        return len(self._calls)

    def see(self, event: Mapping[str, Any]) -> None:
        kind, data = event["kind"], event.get("data") or {}
        if kind == "turn_started":
            self.prompts += 1
        elif kind in ("tool_call", "tool_call_update"):
            key = f"{event.get('session')}:{event.get('turn')}:{data.get('toolCallId')}"
            if key not in self._calls:
                self._calls.add(key)
                self.by_turn[event.get("turn")] = self.by_turn.get(event.get("turn"), 0) + 1
