"""One form for a request and its answer, whichever wire they cross."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "Message",
    "ModelAnswer",
    "ModelRequest",
    "ModelToolCall",
    "OfferedTool",
    "Tokens",
    "new_id",
    "pieces",
    "text_of",
]

Role = Literal["user", "assistant", "tool", "system"]


@dataclass(frozen=True, slots=True)
class Message:
    """Only what choosing a step needs."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool the agent offers to the model."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    freeform: bool = False
    """Its argument is text, not JSON."""
    javascript: bool = False
    """The text is a program: Codex's code mode."""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model is asked."""

    messages: tuple[Message, ...]
    tools: Mapping[str, OfferedTool]
    schema: Mapping[str, Any] | None = None
    """Structured output was asked for."""


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call of the answer; `arguments` is text for a freeform tool."""

    name: str
    arguments: Mapping[str, Any] | str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """`input` counts everything sent, cached included; `output` does not count reasoning."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model says."""

    model: str
    text: str = ""
    think: str = ""
    calls: tuple[ModelToolCall, ...] = ()
    tokens: Tokens | None = None
    """`None`: the provider reports no usage."""
    stop: str | None = None
    """The wire's own word; `None`: what fits."""
    stream_usage: bool = False
    """Chat completions: the client asked for a usage event."""


def new_id(prefix: str) -> str:
    return f"{prefix}{uuid.uuid4().hex[:24]}"


def pieces(text: str, size: int = 24) -> list[str]:
    """A text in the small parts a stream carries."""
    return [text[i : i + size] for i in range(0, len(text), size)]


def text_of(content: Any) -> str:
    """The text in a message's content. What tools answered is left out: a marker there is not a prompt."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, Mapping):
        if str(content.get("type", "")).endswith(("tool_result", "_output")):
            return ""
        return text_of(content.get("text") or content.get("content"))
    return ""
