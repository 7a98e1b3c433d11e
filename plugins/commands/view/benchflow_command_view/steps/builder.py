"""Events to steps. Chunks are joined, a tool call is one step with its updates, a phase one with its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from benchflow_command_view.clock import seconds_of
from benchflow_command_view.steps.blocks import blocks_of, text_of
from benchflow_command_view.steps.spans import Spans
from benchflow_command_view.steps.store import Step, StepStore

__all__ = ["StepBuilder"]

_CHUNKS = {
    "agent_message_chunk": "message",
    "agent_thought_chunk": "thought",
    "user_message_chunk": "prompt",
}
_LONGEST = 4_000_000
"""Characters of one message that are kept for display; the log has all of it."""
_ENDED = ("completed", "failed", "cancelled")


class StepBuilder:
    """Feed it events in order. Nothing it is fed makes it fail: what it does not know is shown as it is."""

    def __init__(self, store: StepStore) -> None:
        self.store, self.spans = store, Spans()
        self.started: float | None = None
        self.turns: list[dict[str, Any]] = []
        """For the outline: where each turn begins."""
        self._text: tuple[int, str, tuple[Any, ...]] | None = None
        self._parts: list[str] = []
        self._length = 0
        self._calls: dict[tuple[Any, ...], int] = {}
        self._phases: dict[str, int] = {}
        self._turn: dict[Any, int] = {}
        self._handlers: dict[str, Callable[[Step, Any], None]] = {
            "tool_call": self._tool,
            "tool_call_update": self._tool,
            "permission_request": self._permission,
            "question_open": lambda step, data: None,  # its answer brings it again
            "turn_started": self._turn_started,
            "turn_finished": self._turn_finished,
            "phase_started": self._phase_started,
            "phase_finished": self._phase_finished,
        }

    def feed(self, event: Mapping[str, Any]) -> None:
        with self.store.lock:
            try:
                self._feed(event)
            except Exception as error:  # an untrusted line, of whatever shape
                self._end_text()
                self.store.add({"type": "other", "title": f"not understood: {error}", "text": _json(event)})

    def _feed(self, event: Mapping[str, Any]) -> None:
        kind, data = str(event.get("kind")), event.get("data")
        step = self._place(event)
        if kind in _CHUNKS and isinstance(data, Mapping):
            self._say(step, _CHUNKS[kind], text_of(data))
            return
        self._end_text()
        handler = self._handlers.get(kind)
        if handler is not None and isinstance(data, Mapping):
            handler(step, data)
        else:
            self.store.add({**step, **_plain(kind, data)})

    def _place(self, event: Mapping[str, Any]) -> Step:
        at = event.get("at")
        if self.started is None or not isinstance(at, int | float):
            at = self._at(at, seconds_of(event.get("time")))
        where = {key: event[key] for key in ("scene", "role", "turn", "session", "seq") if event.get(key) is not None}
        return {"at": round(float(at), 6), **({"time": event["time"]} if event.get("time") else {}), **where}

    def _at(self, at: Any, time: float | None) -> float:
        """Seconds since it began; where a line has no time, when the one before it was."""
        known = isinstance(at, int | float)
        if self.started is None and time is not None:
            self.started = time - (at if known else 0.0)
        if known:
            return float(at)
        if time is not None and self.started is not None:
            return time - self.started
        return self.store.times[-1] if len(self.store) else 0.0

    # --- what is said -----------------------------------------------------------------------------------------

    def _say(self, step: Step, kind: str, text: str) -> None:
        where = (kind, step.get("scene"), step.get("role"), step.get("turn"), step.get("session"))
        if self._text is None or self._text[2] != where:
            self._end_text()
            number = self.store.add({**step, "type": kind, "text": ""}, keep=True)
            self._text = (number, kind, where)
        open_step = self.store.reopen(self._text[0])
        open_step["end"] = step["at"]
        if self._length < _LONGEST:
            self._parts.append(text)
            self._length += len(text)

    def _end_text(self) -> None:
        if self._text is not None:
            self.join_text()
            self.store.close(self._text[0])
        self._text, self._parts, self._length = None, [], 0

    def join_text(self) -> None:
        """What has been said so far becomes visible. Parts are joined when somebody looks, not one by one."""
        if self._text is not None and self._parts:
            self._parts = ["".join(self._parts)[:_LONGEST]]
            self.store.reopen(self._text[0])["text"] = self._parts[0]

    # --- what is done -----------------------------------------------------------------------------------------

    def _tool(self, step: Step, data: Mapping[str, Any]) -> None:
        key = (step.get("session"), step.get("turn"), str(data.get("toolCallId")))
        number = self._calls.get(key)
        if number is None:
            new = {**step, "type": "tool", "call": key[2], "kind": "other", "title": "", "status": "pending"}
            number = self._calls[key] = self.store.add(new, keep=True)
        call = self.store.reopen(number)
        for name in ("kind", "title", "status"):
            if data.get(name) is not None:
                call[name] = str(data[name])
        if data.get("rawInput") is not None:
            call["input"] = data["rawInput"]
        if data.get("rawOutput") is not None:
            call["output"] = data["rawOutput"]
        if data.get("content"):
            call["blocks"] = blocks_of(data["content"])
        if data.get("locations"):
            call["locations"] = data["locations"]
        if isinstance(data.get("_meta"), Mapping):
            _terminal(call, data["_meta"])
        if call["status"] in _ENDED:
            if "end" not in call:
                self.spans.add("tool", call["at"], step["at"], number, call["title"] or call["kind"])
            call["end"] = step["at"]
            self.store.close(number)

    def _permission(self, step: Step, data: Mapping[str, Any]) -> None:
        call = data.get("toolCall")
        if isinstance(call, Mapping):
            self._tool(step, call)
            key = (step.get("session"), step.get("turn"), str(call.get("toolCallId")))
            self.store.reopen(self._calls[key])["permission"] = _answer(data)
        else:
            self.store.add({**step, **_plain("permission_request", data)})

    def _turn_started(self, step: Step, data: Mapping[str, Any]) -> None:
        number = self.store.add({**step, "type": "prompt", "text": str(data.get("prompt") or "")})
        self._turn[step.get("turn")] = len(self.turns)
        keys = ("scene", "role", "turn", "at")
        says = " ".join(str(data.get("prompt") or "")[:200].split())[:48]
        self.turns.append({"n": number, "says": says, **{key: step[key] for key in keys if key in step}})

    def _turn_finished(self, step: Step, data: Mapping[str, Any]) -> None:
        index = self._turn.pop(step.get("turn"), None)
        if index is not None:
            turn = self.turns[index]
            turn["end"], turn["stop"] = step["at"], data.get("stop_reason")
            self.spans.add("turn", turn["at"], step["at"], turn["n"], str(turn.get("role") or "turn"))
        for key, number in list(self._calls.items()):
            if key[1] == step.get("turn"):
                self.store.close(number)
                del self._calls[key]
        facts = {k: data[k] for k in ("stop_reason", "seconds", "usage") if data.get(k) is not None}
        if data.get("stop_reason") not in (None, "end_turn") or data.get("usage"):
            self.store.add({**step, "type": "turn_end", "title": str(data.get("stop_reason") or ""), "data": facts})

    def under_way(self, until: float) -> Spans:
        """Phases, turns and tool calls that have not ended yet."""
        spans = Spans()
        with self.store.lock:
            for name, number in self._phases.items():
                spans.add("phase", self.store.times[number], until, number, name)
            for turn in (self.turns[index] for index in self._turn.values()):
                spans.add("turn", turn["at"], until, turn["n"], str(turn.get("role") or "turn"))
            for number in self._calls.values():
                call = self.store.get(number)
                if "end" not in call:
                    spans.add("tool", call["at"], until, number, call["title"] or call["kind"])
        return spans

    # --- phases -----------------------------------------------------------------------------------------------

    def _phase_started(self, step: Step, data: Mapping[str, Any]) -> None:
        name = str(data.get("phase"))
        self._phases[name] = self.store.add({**step, "type": "phase", "title": name, "status": "running"}, keep=True)

    def _phase_finished(self, step: Step, data: Mapping[str, Any]) -> None:
        name = str(data.get("phase"))
        number = self._phases.pop(name, None)
        if number is None:
            return
        phase = self.store.reopen(number)
        phase["end"], phase["status"] = step["at"], "failed" if data.get("error") else "done"
        if data.get("error"):
            phase["data"] = data["error"]
        self.spans.add("phase", phase["at"], step["at"], number, name)
        self.store.close(number)


def _terminal(call: Step, meta: Mapping[str, Any]) -> None:
    """Adapters of agents send what a command prints piece by piece, beside ACP's own fields."""
    output, ended = meta.get("terminal_output"), meta.get("terminal_exit")
    if isinstance(output, Mapping) and isinstance(output.get("data"), str):
        call["terminal"] = (call.get("terminal", "") + output["data"])[:_LONGEST]
    if isinstance(ended, Mapping) and isinstance(ended.get("exit_code"), int):
        call["exit"] = ended["exit_code"]


def _answer(request: Mapping[str, Any]) -> Any:
    """What was chosen, with the words it was offered in."""
    outcome, options = request.get("outcome"), request.get("options")
    if not isinstance(outcome, Mapping) or not isinstance(options, list):
        return outcome
    chosen = next((o for o in options if isinstance(o, Mapping) and o.get("optionId") == outcome.get("optionId")), {})
    return {**outcome, **{key: chosen[key] for key in ("name", "kind") if key in chosen}}


_TITLES = {
    "notice": "note",
    "outbox_message": "message between roles",
    "soft_verify_started": "verification for the agent begins",
    "soft_verify_finished": "verification for the agent",
    "session_opened": "session opened",
    "session_started": "session started",
    "session_closed": "session closed",
    "agent_launch": "agent launched",
    "rollout_started": "rollout started",
    "rollout_finished": "rollout finished",
    "verifier_isolation": "verifier isolation",
    "usage_update": "usage",
}


def _plain(kind: str, data: Any) -> Step:
    """A kind of event that needs no bookkeeping."""
    if kind == "error" and isinstance(data, Mapping):
        title = ":".join(str(data[key]) for key in ("kind", "code") if data.get(key))
        return {
            "type": "error",
            "title": title or "error",
            "text": str(data.get("message") or _json(data)),
            "data": data,
        }
    if kind == "notice" and isinstance(data, Mapping):
        return {"type": "notice", "text": str(data.get("text") or _json(data))}
    if kind == "plan" and isinstance(data, Mapping):
        return {"type": "plan", "entries": [e for e in data.get("entries") or () if isinstance(e, Mapping)]}
    if kind == "reward" and isinstance(data, Mapping):
        return {
            "type": "reward",
            "title": str(data.get("tag") or "reward"),
            "text": str(data.get("value")),
            "data": data,
        }
    if kind == "outbox_message" and isinstance(data, Mapping):
        who = f"{data.get('from')} to {data.get('to')}"
        return {"type": "outbox", "title": who, "text": str(data.get("content") or "")}
    if kind == "elicitation_request" and isinstance(data, Mapping):
        said = data.get("response")
        parts = [said.get("action"), said.get("content")] if isinstance(said, Mapping) else [said]
        answer = " ".join(part if isinstance(part, str) else _json(part) for part in parts if part)
        return {"type": "question", "text": str(data.get("message") or ""), "answer": answer[:2000], "data": data}
    known = "system" if kind in _TITLES else "other"
    return {"type": known, "title": _TITLES.get(kind, kind.replace("_", " ")), "data": data}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:100_000]
