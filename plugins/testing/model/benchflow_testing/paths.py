"""Which path is which call of which wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchflow_testing.wires import ModelWire
from benchflow_testing.wires.chat import CHAT
from benchflow_testing.wires.gemini import GEMINI
from benchflow_testing.wires.messages import MESSAGES
from benchflow_testing.wires.responses import RESPONSES

__all__ = ["Target", "find", "model_list", "token_count", "wire_of"]


@dataclass(frozen=True, slots=True)
class Target:
    """A call: an answer, or a count of tokens. Gemini and Vertex have model and streaming in the path."""

    wire: ModelWire
    kind: Literal["answer", "count"]
    model: str | None = None
    stream: bool | None = None


def find(path: str) -> Target | None:
    """The call of a POST, or `None`. A version in front may be missing: some proxies leave it out."""
    path = path.rstrip("/")
    last = path.rpartition("/")[2]
    if path.endswith("/chat/completions"):
        return Target(CHAT, "answer")
    if last == "responses":
        return Target(RESPONSES, "answer")
    if path.endswith("/messages/count_tokens"):
        return Target(MESSAGES, "count")
    if last == "messages":
        return Target(MESSAGES, "answer")
    model, colon, method = last.partition(":")
    if colon and method in ("generateContent", "streamGenerateContent"):
        return Target(GEMINI, "answer", model, method == "streamGenerateContent")
    if colon and method in ("rawPredict", "streamRawPredict"):  # Claude on Vertex
        return Target(MESSAGES, "answer", model, method == "streamRawPredict")
    if colon and method == "countTokens":
        return Target(GEMINI, "count", model, False)
    return None


def wire_of(path: str, headers: Mapping[str, str]) -> ModelWire:
    """Whose error shape to answer in, for a path that is no call."""
    if "v1beta" in path:
        return GEMINI
    return MESSAGES if "anthropic-version" in headers else CHAT


def token_count(wire: ModelWire, size: int) -> dict[str, Any]:
    return {"totalTokens" if wire is GEMINI else "input_tokens": max(1, size // 4)}


def model_list(path: str, models: tuple[str, ...]) -> dict[str, Any] | None:
    """The answer to `GET …/models` and `GET …/models/ID`; `None` for a model nobody listed."""
    _, _, wanted = path.rstrip("/").partition("/models")
    shape = _gemini_model if "v1beta" in path else _model
    if wanted:
        name = wanted.lstrip("/")
        return shape(name) if name in models else None
    listed = [shape(name) for name in models]
    if "v1beta" in path:
        return {"models": listed}
    ends = {"first_id": models[0], "last_id": models[-1]} if models else {}
    return {"object": "list", "data": listed, "has_more": False, **ends}


def _model(name: str) -> dict[str, Any]:
    """Fits both OpenAI's and Anthropic's list."""
    return {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": name,
        "created": 1_700_000_000,
        "created_at": "2025-01-01T00:00:00Z",
        "owned_by": "local",
    }


def _gemini_model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": 200_000,
        "outputTokenLimit": 8192,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
