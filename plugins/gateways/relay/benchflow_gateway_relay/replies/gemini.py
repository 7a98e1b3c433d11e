"""Gemini generateContent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchflow_core.contracts import Usage
from benchflow_gateway_relay.replies.counts import added, at, count, usage_of

__all__ = ["ended", "join", "usage"]


def join(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    for event in events:
        for key, value in event.items():
            if key != "candidates" and value is not None:
                whole[key] = value
        listed = event.get("candidates")
        for part in listed if isinstance(listed, list) else ():
            if isinstance(part, Mapping):
                _add(part, candidates)
    if candidates:
        for candidate in candidates.values():
            _join_texts(candidate["content"]["parts"])
        whole["candidates"] = [candidates[index] for index in sorted(candidates)]
    return whole


def _add(part: Mapping[str, Any], candidates: dict[int, dict[str, Any]]) -> None:
    index = part.get("index") if isinstance(part.get("index"), int) else 0
    assert isinstance(index, int)
    candidate = candidates.setdefault(index, {"index": index, "content": {"role": "model", "parts": []}})
    for key, value in part.items():
        if key not in ("content", "index") and value is not None:
            candidate[key] = value
    parts = at(part, "content", "parts")
    candidate["content"]["parts"] += [p for p in parts if isinstance(p, Mapping)] if isinstance(parts, list) else []


def _join_texts(parts: list[Mapping[str, Any]]) -> None:
    """Texts that follow each other and are of one kind become one; in place."""
    joined: list[Mapping[str, Any]] = []
    texts: list[str] = []
    for part in [*parts, {}]:
        is_text = isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}
        if texts and not (is_text and bool(part.get("thought")) == bool(joined[-1].get("thought"))):
            joined[-1] = {**joined[-1], "text": "".join(texts)}
            texts = []
        if is_text and texts:
            texts.append(part["text"])
        elif part:
            joined.append(part)
            texts = [part["text"]] if is_text else []
    parts[:] = joined


def usage(response: Mapping[str, Any]) -> Usage:
    told = response.get("usageMetadata")
    prompt = count(told, "promptTokenCount")
    said, thought = count(told, "candidatesTokenCount"), count(told, "thoughtsTokenCount")
    if prompt is not None and said is None and thought is None and _total_is(told, prompt):
        said = 0  # Gemini leaves out what is zero
    return usage_of(
        None if prompt is None else added(prompt, count(told, "toolUsePromptTokenCount")),
        added(said, thought),
        count(told, "cachedContentTokenCount"),
    )


def _total_is(told: Any, prompt: int) -> bool:
    return count(told, "totalTokenCount") == prompt


def ended(response: Mapping[str, Any]) -> bool:
    candidates = response.get("candidates")
    listed = candidates if isinstance(candidates, list) else []
    return any(at(c, "finishReason") for c in listed) or bool(response.get("promptFeedback"))
