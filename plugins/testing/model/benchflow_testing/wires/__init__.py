"""The four model APIs, each as `parse`, `whole`, `events` and `error`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchflow_testing.neutral import Answer, Request

__all__ = ["Wire", "sse"]


@dataclass(frozen=True, slots=True)
class Wire:
    """How one API says things."""

    name: str
    parse: Callable[[Mapping[str, Any]], Request]
    whole: Callable[[Answer], dict[str, Any]]
    """The answer in one piece."""
    events: Callable[[Answer], Iterator[bytes]]
    """The answer as a stream of server-sent events."""
    error: Callable[[int, str, str | None], dict[str, Any]]
    """Status, message and code as the API's error body."""


def sse(data: Mapping[str, Any], event: str | None = None, end: str = "\n\n") -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}{end}".encode()
