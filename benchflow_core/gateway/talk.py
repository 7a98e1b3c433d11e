"""One question to a model over whichever wire its gateway offers: for simulated users and judges on the host."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Sequence
from typing import Any, Final

from benchflow_core.contracts.gateways import ModelEndpoint
from benchflow_core.errors import ProviderError

__all__ = ["ask", "post"]

_SECONDS: Final = 300.0
Talk = Sequence[tuple[str, str]]
"""`("user" | "assistant", text)`, in order."""


async def ask(endpoint: ModelEndpoint, talk: Talk, *, system: str = "", max_tokens: int = 2048) -> str:
    """The model's answer as text. Raises `ProviderError`: what exactly went wrong is in the gateway's log."""
    try:
        value = await asyncio.to_thread(post, endpoint, talk, system=system, max_tokens=max_tokens)
        text = _ANSWER[endpoint.wire](value)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise ProviderError(f"model '{endpoint.model}' gave no answer: {type(error).__name__}: {error}") from error
    if not text.strip():
        raise ProviderError(f"model '{endpoint.model}' gave an empty answer.")
    return text


def post(endpoint: ModelEndpoint, talk: Talk, *, system: str = "", max_tokens: int, seconds: float = _SECONDS) -> Any:
    """One request over the endpoint's wire, and what came back. Blocking; straight to this host, through no proxy."""
    path, body = _REQUEST[endpoint.wire](endpoint.model, talk, system, max_tokens)
    headers = {"authorization": f"Bearer {endpoint.key}", "content-type": "application/json"}
    request = urllib.request.Request(
        endpoint.base_url + path, json.dumps(body).encode(), {**headers, "anthropic-version": "2023-06-01"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=seconds) as response:
        return json.load(response)


def _chat(model: str, talk: Talk, system: str, most: int) -> tuple[str, dict[str, Any]]:
    said = [{"role": "system", "content": system}] if system else []
    said += [{"role": role, "content": text} for role, text in talk]
    return "/v1/chat/completions", {"model": model, "messages": said, "max_tokens": most}


def _responses(model: str, talk: Talk, system: str, most: int) -> tuple[str, dict[str, Any]]:
    said = [{"role": role, "content": text} for role, text in talk]
    return "/v1/responses", {"model": model, "input": said, "instructions": system or None, "max_output_tokens": most}


def _messages(model: str, talk: Talk, system: str, most: int) -> tuple[str, dict[str, Any]]:
    said = [{"role": role, "content": text} for role, text in talk]
    return "/v1/messages", {
        "model": model,
        "messages": said,
        "max_tokens": most,
        **({"system": system} if system else {}),
    }


def _gemini(model: str, talk: Talk, system: str, most: int) -> tuple[str, dict[str, Any]]:
    said = [{"role": "model" if role == "assistant" else role, "parts": [{"text": text}]} for role, text in talk]
    more = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
    settings = {"generationConfig": {"maxOutputTokens": most}}
    return f"/v1beta/models/{model}:generateContent", {"contents": said, **settings, **more}


_REQUEST: Final = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}
_ANSWER: Final = {
    "chat": lambda value: str(value["choices"][0]["message"]["content"] or ""),
    "responses": lambda value: "".join(
        part["text"]
        for item in value["output"]
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    ),
    "messages": lambda value: "".join(part["text"] for part in value["content"] if part["type"] == "text"),
    "gemini": lambda value: "".join(part.get("text", "") for part in value["candidates"][0]["content"]["parts"]),
}
