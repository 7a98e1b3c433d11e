"""What a provider answered, put together from what crossed the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchflow_core.contracts import Usage, Wire
from benchflow_core.contracts.quick import dataclass
from benchflow_gateway_relay.replies import chat, gemini, messages, responses
from benchflow_gateway_relay.sse import json_events

__all__ = ["WholeAnswer", "read_reply"]

JsonDict = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer as one object, whether it was streamed or not."""

    response: JsonDict | None
    usage: Usage
    model: str | None
    ended: bool
    """False: the stream stopped before the provider said it was done."""


@dataclass(frozen=True, slots=True)
class _Reader:
    join: Callable[[Sequence[JsonDict]], JsonDict]
    """A stream's events as the answer would be without streaming."""
    usage: Callable[[Mapping[str, Any]], Usage]
    model_field: str
    ended: Callable[[Mapping[str, Any]], bool]


_READERS: Mapping[Wire, _Reader] = {
    "chat": _Reader(chat.join, chat.usage, "model", chat.ended),
    "responses": _Reader(responses.join, responses.usage, "model", responses.ended),
    "messages": _Reader(messages.join, messages.usage, "model", messages.ended),
    "gemini": _Reader(gemini.join, gemini.usage, "modelVersion", gemini.ended),
}


def read_reply(wire: Wire, raw: bytes, *, events: bool) -> WholeAnswer:
    """`events`: a stream of server-sent events. Without JSON in it, `response` is `None`."""
    reader = _READERS[wire]
    if events:
        parts = list(json_events(raw))
        return _reply(reader, reader.join(parts) if parts else None)
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return WholeAnswer(None, Usage(), None, False)
    if isinstance(value, list):  # Gemini streams a JSON array unless it is asked for events
        parts = [part for part in value if isinstance(part, dict)]
        return _reply(reader, reader.join(parts) if parts else None)
    return _reply(reader, value if isinstance(value, dict) else None)


def _reply(reader: _Reader, response: JsonDict | None) -> WholeAnswer:
    if response is None:
        return WholeAnswer(None, Usage(), None, False)
    model = response.get(reader.model_field)
    return WholeAnswer(
        response, reader.usage(response), model if isinstance(model, str) else None, reader.ended(response)
    )
