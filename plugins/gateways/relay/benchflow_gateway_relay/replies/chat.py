"""OpenAI chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchflow_core.contracts import Usage
from benchflow_gateway_relay.replies.counts import at, count, usage_of

__all__ = ["ended", "join", "usage"]

_GROWING = frozenset({"content", "reasoning_content", "reasoning", "refusal", "thinking"})


def join(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    texts: dict[tuple[int, str], list[str]] = {}
    for event in events:
        for key, value in event.items():
            if key != "choices" and value is not None:
                whole[key] = value
        listed = event.get("choices")
        for part in listed if isinstance(listed, list) else ():
            if isinstance(part, Mapping):
                _add(part, choices, texts)
    for (index, name), parts in texts.items():
        choices[index]["message"][name] = "".join(parts)
    if choices or "choices" in (events[0] if events else {}):
        whole["object"] = "chat.completion"
        whole["choices"] = [choices[index] for index in sorted(choices)]
    return whole


def _add(part: Mapping[str, Any], choices: dict[int, dict[str, Any]], texts: dict[tuple[int, str], list[str]]) -> None:
    index = part.get("index") if isinstance(part.get("index"), int) else 0
    assert isinstance(index, int)
    choice = choices.setdefault(index, {"index": index, "message": {"role": "assistant"}, "finish_reason": None})
    for key, value in part.items():
        if key not in ("delta", "index") and value is not None:
            choice[key] = value
    delta = part.get("delta")
    for key, value in delta.items() if isinstance(delta, Mapping) else ():
        if key in _GROWING and isinstance(value, str):
            texts.setdefault((index, key), []).append(value)
        elif key == "tool_calls" and isinstance(value, list):
            calls = choice["message"].setdefault("tool_calls", [])
            for call in value:
                if isinstance(call, Mapping):
                    _add_call(call, calls)
        elif isinstance(value, list):
            choice["message"].setdefault(key, []).extend(value)
        elif value is not None:
            choice["message"][key] = value


def _add_call(part: Mapping[str, Any], calls: list[dict[str, Any]]) -> None:
    """Calls come in parts that belong together by their index; arguments grow."""
    index = part.get("index", len(calls) - 1 if calls else 0)
    call = next((c for c in calls if c["index"] == index), None)
    if call is None:
        call = {"index": index}
        calls.append(call)
    for key, value in part.items():
        if isinstance(value, Mapping):
            inner = call.setdefault(key, {})
            for name, text in value.items():
                grows = name in ("arguments", "input") and isinstance(text, str)
                inner[name] = inner.get(name, "") + text if grows else text
        elif value is not None:
            call[key] = value


def usage(response: Mapping[str, Any]) -> Usage:
    told = response.get("usage")
    cached = count(told, "prompt_tokens_details", "cached_tokens")
    return usage_of(
        count(told, "prompt_tokens"),
        count(told, "completion_tokens"),
        cached if cached is not None else count(told, "prompt_cache_hit_tokens"),
        count(told, "prompt_tokens_details", "cache_write_tokens"),
        at(told, "cost"),
    )


def ended(response: Mapping[str, Any]) -> bool:
    choices = response.get("choices")
    return isinstance(choices, list) and any(at(choice, "finish_reason") for choice in choices)
