"""The four model APIs, each as `parse`, `whole`, `events` and `error`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchflow_testing.neutral import ModelAnswer, ModelRequest

__all__ = ["ModelWire", "sse"]


@dataclass(frozen=True, slots=True)
class ModelWire:
    """How one API says things."""

    name: str
    parse: Callable[[Mapping[str, Any]], ModelRequest]
    whole: Callable[[ModelAnswer], dict[str, Any]]
    """The answer in one piece."""
    events: Callable[[ModelAnswer], Iterator[bytes]]
    """The answer as a stream of server-sent events."""
    error: Callable[[int, str, str | None], dict[str, Any]]
    """Status, message and code as the API's error body."""


def sse(data: Mapping[str, Any], event: str | None = None, end: str = "\n\n") -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}{end}".encode()
