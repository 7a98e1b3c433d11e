"""Claude Code: the session files below `~/.claude/projects`, and what `--output-format stream-json` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchflow_command_view.sessions import Event, Line, SessionFormat

__all__ = ["detect"]

_TALK = ("user", "assistant")
_QUIET = {
    "ai-title",
    "agent-name",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attachment",
    "custom-title",
    "file-history-snapshot",
    "last-prompt",
    "permission-mode",
    "progress",
    "queue-operation",
    "rate_limit_event",
    "stream_event",
    "tools-used",
}
"""Kept for the program itself: nothing that was said or done."""
_KINDS = {
    "Bash": "execute",
    "Read": "read",
    "Edit": "edit",
    "Write": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Grep": "search",
    "Glob": "search",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
}


def detect(line: Line) -> SessionFormat | None:
    message = line.get("message")
    talk = line.get("type") in _TALK and isinstance(message, Mapping) and "role" in message
    init = line.get("type") == "system" and "session_id" in line and "subtype" in line
    own = line.get("type") in _QUIET | {"summary"} and bool(
        {"sessionId", "leafUuid", "messageId", "uuid"} & line.keys()
    )
    return SessionFormat("Claude Code session", _Session().translate) if talk or init or own else None


class _Session:
    def __init__(self) -> None:
        self._turn = 0
        self._replies: set[str] = set()

    def translate(self, line: Line) -> Iterator[Event]:
        kind = line.get("type")
        if kind in _TALK:
            yield from self._message(line, line["message"])
        elif kind == "summary":
            yield self._event(line, "notice", {"text": f"summary: {line.get('summary')}"})
        elif kind == "system":
            text = line.get("content") or line.get("subtype") or "system"
            data = {k: v for k, v in line.items() if k not in ("type", "uuid", "parentUuid")}
            yield (
                self._event(line, "notice", {"text": str(text)})
                if line.get("content")
                else self._event(line, "session_started", data)
            )
        elif kind == "result":
            data = {"stop_reason": line.get("subtype"), "seconds": (line.get("duration_ms") or 0) / 1000}
            yield self._event(line, "turn_finished", {**data, "usage": line.get("usage")})
        elif kind not in _QUIET:
            what = f"a line of type {str(kind)[:60]!r}"
            yield self._event(line, "not_understood", {"what": what, "line": dict(line)})

    def _message(self, line: Line, message: Mapping[str, Any]) -> Iterator[Event]:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if line["type"] == "user" and not any(b.get("type") == "tool_result" for b in blocks):
            self._turn += 1
            texts = [str(b.get("text") or f"[{b.get('type')}]") for b in blocks]
            yield self._event(line, "turn_started", {"prompt": "\n".join(texts)})
            return
        for block in blocks:
            yield from self._block(line, block)
        usage, number = message.get("usage"), str(message.get("id"))
        if usage and number not in self._replies:
            self._replies.add(number)
            kept = {key: value for key, value in usage.items() if isinstance(value, int)}
            yield self._event(line, "usage_update", {"model": message.get("model"), **kept})

    def _block(self, line: Line, block: Mapping[str, Any]) -> Iterator[Event]:
        kind = block.get("type")
        if kind == "text":
            yield self._event(line, "agent_message_chunk", {"text": block.get("text") or ""})
        elif kind == "thinking":
            yield self._event(line, "agent_thought_chunk", {"text": block.get("thinking") or ""})
        elif kind == "redacted_thinking":
            yield self._event(line, "agent_thought_chunk", {"text": "[not shown by the provider]"})
        elif kind in ("tool_use", "server_tool_use"):
            yield self._event(line, "tool_call", _call(block))
        elif str(kind).endswith("tool_result"):
            yield self._event(line, "tool_call_update", _result(block))
        else:
            what = f"a block of type {str(kind)[:60]!r}"
            yield self._event(line, "not_understood", {"what": what, "line": dict(block)})

    def _event(self, line: Line, kind: str, data: dict[str, Any]) -> Event:
        side = line.get("isSidechain") or line.get("parent_tool_use_id")
        event = {"kind": kind, "time": line.get("timestamp"), "turn": self._turn or None, "data": data}
        event["session"] = line.get("sessionId") or line.get("session_id")
        event["role"] = "subagent" if side else "user" if kind == "turn_started" else "assistant"
        return event


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    name, given = str(block.get("name")), block.get("input") or {}
    about = next(
        (given[k] for k in ("command", "file_path", "pattern", "url", "query", "description") if given.get(k)), ""
    )
    call = {
        "toolCallId": block.get("id"),
        "title": f"{name}: {about}" if about else name,
        "kind": _KINDS.get(name, "other"),
        "rawInput": given,
    }
    edits = given.get("edits") if name == "MultiEdit" else [given] if "old_string" in given else []
    if name == "Write" and "content" in given:
        call["content"] = [{"type": "diff", "path": about, "oldText": "", "newText": given["content"]}]
    elif edits:
        call["content"] = [
            {"type": "diff", "path": about, "oldText": e.get("old_string"), "newText": e.get("new_string")}
            for e in edits
        ]
    return call


def _result(block: Mapping[str, Any]) -> dict[str, Any]:
    content = block.get("content")
    if isinstance(content, list) and all(isinstance(b, Mapping) and b.get("type") == "text" for b in content):
        content = "\n".join(str(b.get("text")) for b in content)
    status = "failed" if block.get("is_error") else "completed"
    return {"toolCallId": block.get("tool_use_id"), "status": status, "rawOutput": content}
