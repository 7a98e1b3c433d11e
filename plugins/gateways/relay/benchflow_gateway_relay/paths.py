"""What is open: the inference calls of each wire and the list of models. Everything else is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from benchflow_core.contracts import ModelTarget, Wire
from benchflow_core.contracts.quick import dataclass

__all__ = ["Route", "find_route", "model_list", "upstream_url", "wire_of_path"]

_CALLS: tuple[tuple[re.Pattern[str], Wire, Literal["answer", "count"], str], ...] = (
    (re.compile(r"(?:/v1)?/chat/completions"), "chat", "answer", "/chat/completions"),
    (re.compile(r"(?:/v1)?/responses"), "responses", "answer", "/responses"),
    (re.compile(r"(?:/v1)?/responses/compact"), "responses", "answer", "/responses/compact"),
    (re.compile(r"(?:/v1)?/messages"), "messages", "answer", "/v1/messages"),
    (re.compile(r"(?:/v1)?/messages/count_tokens"), "messages", "count", "/v1/messages/count_tokens"),
)
_GEMINI = re.compile(r"(?:/(v1|v1beta|v1alpha))?/models/(.+):(generateContent|streamGenerateContent|countTokens)")
_MODELS = re.compile(r"(?:/(?:v1|v1beta|v1alpha))?/models(?:/(.+))?")


@dataclass(frozen=True, slots=True)
class Route:
    """A call that may be made. Nothing of the client's path goes upstream: it is built anew from this."""

    wire: Wire | None
    """`None`: of no wire in particular."""
    kind: Literal["answer", "count", "models"]
    suffix: str = ""
    model: str | None = None
    """From the path, where the wire has it there."""
    stream: bool | None = None
    """From the path; `None`: the body says it."""


def find_route(method: str, path: str) -> Route | None:
    path = path.rstrip("/")
    if method in ("GET", "HEAD"):
        found = _MODELS.fullmatch(path)
        return Route(None, "models", model=found[1]) if found else None
    if method != "POST":
        return None
    for pattern, wire, kind, suffix in _CALLS:
        if pattern.fullmatch(path):
            return Route(wire, kind, suffix)
    found = _GEMINI.fullmatch(path)
    if found is None:
        return None
    version, model, call = found.groups()
    suffix = f"/{version or 'v1beta'}/models/{{model}}:{call}"
    return Route("gemini", "count" if call == "countTokens" else "answer", suffix, model, call.startswith("stream"))


def upstream_url(target: ModelTarget, route: Route) -> str:
    """The provider's address of a call. A version that the base URL already has is not added again."""
    base = target.base_url.rstrip("/")
    if route.wire == "messages":
        base = base.removesuffix("/v1")
    elif route.wire == "gemini":
        base = re.sub(r"/v1(beta|alpha)?$", "", base)
    return base + route.suffix.replace("{model}", quote(target.model, safe=""))


def wire_of_path(path: str) -> Wire:
    """Whose error shape fits a path that is not open."""
    if "/v1beta" in path or ":" in path:
        return "gemini"
    return "messages" if "/messages" in path else "chat"


def model_list(wire: Wire, models: tuple[str, ...], wanted: str | None) -> Mapping[str, Any] | None:
    """The declared models, as `GET …/models` of the wire has it; `None` where the one asked for is not among them."""
    shape = {"gemini": _gemini, "messages": _anthropic}.get(wire, _openai)
    if wanted is not None:
        return shape(wanted) if wanted in models else None
    listed = [shape(model) for model in models]
    if wire == "gemini":
        return {"models": listed}
    if wire == "messages":
        return {"data": listed, "has_more": False, "first_id": models[0], "last_id": models[-1]}
    return {"object": "list", "data": listed}


def _openai(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "benchflow"}


def _anthropic(model: str) -> dict[str, Any]:
    return {"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z"}


def _gemini(model: str) -> dict[str, Any]:
    calls = ["generateContent", "countTokens"]
    return {"name": f"models/{model}", "displayName": model, "supportedGenerationMethods": calls}
