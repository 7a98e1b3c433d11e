"""ACP: raw JSON-RPC lines, alone or wrapped by whoever logged them; bare session updates; our own trajectory files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchflow_command_view.sessions import Event, Line, SessionFormat

__all__ = ["detect"]

_ENTRIES = ("user_message", "agent_message", "agent_thought", "tool_call")
_WRAPS = ("message", "msg", "payload", "frame", "data", "raw", "json")
_TIMES = ("time", "timestamp", "ts", "at")
_UNSEEN = ("available_commands_update", "current_mode_update", "config_option_update", "session_info_update")


def detect(line: Line) -> SessionFormat | None:
    if _rpc(line) is not None:
        return SessionFormat("ACP messages", _Wire().translate)
    if _update(line) is not None:
        return SessionFormat("ACP session updates", _Wire().bare)
    if line.get("type") in _ENTRIES or (line.get("type") == "notice" and "text" in line):
        return SessionFormat("ACP trajectory", _entry)
    return None


def _rpc(line: Line) -> Mapping[str, Any] | None:
    """The JSON-RPC message in a line."""
    if "jsonrpc" in line:
        return line
    for name in _WRAPS:
        inner = line.get(name)
        if isinstance(inner, Mapping) and "jsonrpc" in inner:
            return inner
    return None


def _update(line: Line) -> Mapping[str, Any] | None:
    if "sessionUpdate" in line:
        return line
    inner = line.get("update") or (line.get("params") or {}).get("update")
    return inner if isinstance(inner, Mapping) and "sessionUpdate" in inner else None


class _Wire:
    """Both directions of one connection: answers belong to the request with their number."""

    def __init__(self) -> None:
        self._asked: dict[Any, tuple[str, Any]] = {}
        self._turn = 0
        self._time: Any = None

    def bare(self, line: Line) -> Iterator[Event]:
        self._time = next((line[key] for key in _TIMES if key in line), self._time)
        update = _update(line)
        if update is None:
            yield self._lost("a line without a session update", line)
        else:
            yield from self._told(update, line.get("sessionId"))

    def translate(self, line: Line) -> Iterator[Event]:
        self._time = next((line[key] for key in _TIMES if key in line), self._time)
        message = _rpc(line)
        if message is None:
            yield self._lost("a line without a JSON-RPC message", line)
            return
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            yield from self._answer(message)
            return
        if "id" in message:
            self._asked[message["id"]] = (str(method), params)
        if method == "session/update" and isinstance(params.get("update"), Mapping):
            yield from self._told(params["update"], params.get("sessionId"))
        elif method == "session/prompt":
            self._turn += 1
            parts = params.get("prompt") or []
            texts = [str(part.get("text") or f"[{part.get('type')}]") for part in parts]
            yield self._event("turn_started", {"prompt": "\n".join(texts)}, params.get("sessionId"))
        elif method not in ("session/request_permission",):
            yield self._event("acp_request", {"method": method, "params": params}, params.get("sessionId"))

    def _told(self, update: Mapping[str, Any], session: Any) -> Iterator[Event]:
        kind = str(update["sessionUpdate"])
        if kind not in _UNSEEN:
            yield self._event(kind, dict(update), session)

    def _answer(self, message: Mapping[str, Any]) -> Iterator[Event]:
        method, params = self._asked.pop(message.get("id"), ("", {}))
        if message.get("error"):
            error = message["error"]
            yield self._event(
                "error", {"kind": "acp", "code": error.get("code"), "message": f"{method}: {error.get('message')}"}
            )
            return
        result = message.get("result") or {}
        if method == "session/prompt":
            yield self._event("turn_finished", {"stop_reason": result.get("stopReason"), "usage": result.get("usage")})
        elif method == "session/request_permission":
            yield self._event(
                "permission_request", {**params, "outcome": result.get("outcome")}, params.get("sessionId")
            )
        elif method in ("initialize", "session/new", "session/load"):
            yield self._event("session_started", {"method": method, **result})

    def _event(self, kind: str, data: dict[str, Any], session: Any = None) -> Event:
        role = "user" if kind == "turn_started" else "agent"
        event = {"kind": kind, "time": self._time, "role": role, "turn": self._turn or None, "data": data}
        return {**event, **({"session": session} if session else {})}

    def _lost(self, what: str, line: Line) -> Event:
        return self._event("not_understood", {"what": what, "line": dict(line)})


_OUT = {"kind": "kind", "title": "title", "status": "status", "content": "content", "raw_input": "rawInput"} | {
    "raw_output": "rawOutput",
    "locations": "locations",
}


def _entry(line: Line) -> Iterator[Event]:
    """One entry of `acp_trajectory.jsonl`, ours or of older BenchFlow."""
    kind = line.get("type")
    place = {key: line[key] for key in ("time", "scene", "role", "turn", "session") if key in line}
    if kind == "user_message":
        yield {"kind": "turn_started", **place, "data": {"prompt": line.get("text") or ""}}
    elif kind in ("agent_message", "agent_thought"):
        yield {"kind": f"{kind}_chunk", **place, "data": {"text": line.get("text") or ""}}
    elif kind == "tool_call":
        data = {new: line[old] for old, new in _OUT.items() if line.get(old) is not None}
        call = {"toolCallId": line.get("tool_call_id"), **data}
        yield {"kind": "tool_call", **place, "data": {**call, "status": "pending"}}
        ended = {**place, "time": line.get("finished") or line.get("time")}
        yield {"kind": "tool_call_update", **ended, "data": call}
    elif kind in ("error", "notice", "plan", "usage_update"):
        data = {key: value for key, value in line.items() if key not in ("type", *place)}
        yield {"kind": kind, **place, "data": data}
    else:
        what = f"an entry of type {str(kind)[:60]!r}"
        yield {"kind": "not_understood", **place, "data": {"what": what, "line": dict(line)}}
