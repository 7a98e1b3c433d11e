"""Codex: the rollout files below `~/.codex/sessions`, old and new, and what `codex exec --json` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from benchflow_command_view.sessions import Event, Line, SessionFormat

__all__ = ["detect"]

_WRAPPED = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_QUIET = ("turn_context", "world_state", "token_usage_record")
"""Kept for the program itself."""
_STREAM = ("thread.", "turn.", "item.")
_ITEMS = ("message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call")
_TWICE = {
    "agent_message",
    "agent_message_delta",
    "agent_reasoning",
    "agent_reasoning_delta",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "exec_command_begin",
    "exec_command_end",
    "exec_command_output_delta",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "patch_apply_end",
    "raw_response_item",
    "task_complete",
    "task_started",
    "thread_name_updated",
    "thread_settings_applied",
    "turn_diff",
    "user_message",
    "web_search_begin",
    "web_search_end",
    "item_started",
    "item_completed",
}
"""Messages for a display: the response items beside them say the same, whole."""


_EXITED = re.compile(
    r"(?:Chunk ID|Wall time)[^\n]*\n(?:[^\n]*\n)*?Process exited with code (\d+)\n(?:[^\n]*\n)*?Output:\n"
)
"""What stands above the output of a command, since 0.50 or so."""


def detect(line: Line) -> SessionFormat | None:
    kind = str(line.get("type"))
    session = _Session()
    if kind in _WRAPPED and "payload" in line:
        return SessionFormat("Codex session", session.wrapped)
    if kind.startswith(_STREAM):
        return SessionFormat("Codex exec --json", session.stream)
    if ("id" in line and "timestamp" in line and "instructions" in line) or kind in _ITEMS:
        return SessionFormat("Codex session (older)", session.older)
    return None


class _Session:
    def __init__(self) -> None:
        self._turn = 0
        self._time: Any = None

    # --- rollout files ----------------------------------------------------------------------------------------

    def wrapped(self, line: Line) -> Iterator[Event]:
        self._time, payload, kind = line.get("timestamp"), line["payload"], line.get("type")
        if kind == "session_meta":
            yield self._event("session_started", {k: v for k, v in payload.items() if k != "instructions"})
        elif kind == "response_item":
            yield from self._item(payload)
        elif kind == "event_msg":
            yield from self._message(payload)
        elif kind == "compacted":
            yield self._event("notice", {"text": f"the conversation was compacted: {payload.get('message') or ''}"})
        elif kind not in _QUIET:
            yield self._lost(f"a line of type {str(kind)[:60]!r}", line)

    def older(self, line: Line) -> Iterator[Event]:
        self._time = line.get("timestamp", self._time)
        if "type" in line:
            yield from self._item(line)
        elif "instructions" in line:
            yield self._event("session_started", {"id": line.get("id")})
        elif line.get("record_type") != "state":
            yield self._lost("a line without a type", line)

    def _message(self, payload: Mapping[str, Any]) -> Iterator[Event]:
        kind = payload.get("type")
        if kind == "token_count":
            info = payload.get("info") or {}
            if info.get("last_token_usage"):
                yield self._event("usage_update", dict(info["last_token_usage"]))
        elif kind in ("error", "stream_error"):
            yield self._event("error", {"kind": "codex", "code": kind, "message": payload.get("message")})
        elif kind == "turn_aborted":
            yield self._event("notice", {"text": f"the turn was aborted: {payload.get('reason')}"})
        elif kind not in _TWICE:
            yield self._lost(f"an event of type {str(kind)[:60]!r}", payload)

    def _item(self, item: Mapping[str, Any]) -> Iterator[Event]:
        kind = item.get("type")
        if kind == "message":
            yield from self._said(item)
        elif kind == "reasoning":
            parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
            text = "\n".join(str(part.get("text") or "") for part in parts)
            yield self._event("agent_thought_chunk", {"text": text or "[not shown by the provider]"})
        elif kind in ("function_call", "custom_tool_call", "local_shell_call", "web_search_call"):
            yield self._event("tool_call", _call(item))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield self._event("tool_call_update", _output(item))
        elif kind != "ghost_snapshot":
            yield self._lost(f"an item of type {str(kind)[:60]!r}", item)

    def _said(self, item: Mapping[str, Any]) -> Iterator[Event]:
        parts = item.get("content") or []
        text = parts if isinstance(parts, str) else "\n".join(str(p.get("text") or f"[{p.get('type')}]") for p in parts)
        if item.get("role") == "assistant":
            yield self._event("agent_message_chunk", {"text": text})
        elif item.get("role") == "user" and not text.lstrip().startswith(
            ("<environment_context>", "<user_instructions>")
        ):
            self._turn += 1
            yield self._event("turn_started", {"prompt": text})
        else:
            yield self._event("context", {"role": item.get("role"), "text": text})

    # --- exec --json ------------------------------------------------------------------------------------------

    def stream(self, line: Line) -> Iterator[Event]:
        kind = str(line.get("type"))
        if kind == "thread.started":
            yield self._event("session_started", {"thread_id": line.get("thread_id")})
        elif kind == "turn.started":
            self._turn += 1
            yield self._event("turn_started", {"prompt": ""})
        elif kind in ("turn.completed", "turn.failed"):
            if line.get("error"):
                yield self._event("error", {"kind": "codex", "code": kind, "message": _message_of(line["error"])})
            yield self._event("turn_finished", {"stop_reason": kind[5:], "usage": line.get("usage")})
        elif kind.startswith("item."):
            yield from self._part(kind, line["item"])
        else:
            yield self._lost(f"a line of type {kind[:60]!r}", line)

    def _part(self, kind: str, item: Mapping[str, Any]) -> Iterator[Event]:
        what = item.get("type") or item.get("item_type")
        done = kind == "item.completed"
        if what in ("agent_message", "assistant_message", "reasoning"):
            if done:
                chunk = "agent_thought_chunk" if what == "reasoning" else "agent_message_chunk"
                yield self._event(chunk, {"text": str(item.get("text") or "")})
        elif what == "error":
            yield self._event("error", {"kind": "codex", "code": "error", "message": item.get("message")})
        elif what == "todo_list":
            entries = [
                {"content": i.get("text"), "status": "completed" if i.get("completed") else "pending"}
                for i in item.get("items") or ()
            ]
            yield self._event("plan", {"entries": entries})
        elif what in ("command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"):
            yield self._event("tool_call_update", _executed(str(what), item))
        else:
            yield self._lost(f"an item of type {str(what)[:60]!r}", item)

    # ----------------------------------------------------------------------------------------------------------

    def _event(self, kind: str, data: dict[str, Any]) -> Event:
        role = "user" if kind == "turn_started" else "assistant"
        return {"kind": kind, "time": self._time, "role": role, "turn": self._turn or None, "data": data}

    def _lost(self, what: str, line: Mapping[str, Any]) -> Event:
        return self._event("not_understood", {"what": what, "line": dict(line)})


def _call(item: Mapping[str, Any]) -> dict[str, Any]:
    given = item.get("arguments") or item.get("input") or item.get("action") or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = {"input": given}
    name = str(item.get("name") or str(item.get("type")).removesuffix("_call"))
    command = (given.get("command") or given.get("cmd") or given.get("query")) if isinstance(given, Mapping) else None
    about = " ".join(map(str, command)) if isinstance(command, list) else command or ""
    kind = "execute" if command and "search" not in name else "edit" if "patch" in name else "other"
    call = {"toolCallId": item.get("call_id") or item.get("id"), "kind": kind, "rawInput": given}
    return {**call, "title": f"{name}: {about}" if about else name, "status": item.get("status") or "pending"}


def _output(item: Mapping[str, Any]) -> dict[str, Any]:
    output, status = item.get("output"), "completed"
    if isinstance(output, str) and output.startswith("{"):
        with suppress(ValueError):
            output = json.loads(output)
    elif isinstance(output, str) and (found := _EXITED.match(output)):
        status = "completed" if found[1] == "0" else "failed"
        output = output[found.end() :]
    if isinstance(output, Mapping):
        code = (output.get("metadata") or {}).get("exit_code")
        status = "failed" if code or output.get("success") is False else status
        output = output.get("output", output.get("content", output))
    return {"toolCallId": item.get("call_id"), "status": status, "rawOutput": output}


def _executed(what: str, item: Mapping[str, Any]) -> dict[str, Any]:
    title = item.get("command") or item.get("query") or item.get("tool") or what.replace("_", " ")
    status = {"in_progress": "in_progress", "failed": "failed", "declined": "failed"}.get(
        str(item.get("status")), "completed"
    )
    output = item.get("aggregated_output") or item.get("result") or item.get("changes") or item.get("error")
    kind = {"command_execution": "execute", "file_change": "edit", "web_search": "fetch"}.get(what, "other")
    given = item.get("arguments")
    call = {"toolCallId": item.get("id"), "title": str(title), "kind": kind, "status": status, "rawOutput": output}
    return {**call, **({"rawInput": given} if given is not None else {})}


def _message_of(error: Any) -> str:
    return str(error.get("message") if isinstance(error, Mapping) else error)
