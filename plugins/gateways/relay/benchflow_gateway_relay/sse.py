"""Server-sent events: reading a recorded stream, and taking one event out of a passing one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["UsageEventFilter", "json_events", "whole_events"]

_BOUNDARY = re.compile(rb"\r?\n\r?\n")
_NO_CHOICES = re.compile(rb'"choices"\s*:\s*\[\s*\]')


def json_events(raw: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream; anything else in it (`[DONE]`, comments, a cut last event) is left out."""
    for block in raw.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
        data = _data(block)
        if data[:1] == "{":
            try:
                value = json.loads(data)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def whole_events(raw: bytes) -> Iterator[bytes]:
    """The bytes of a stream, cut where an event ends."""
    start = 0
    for found in _BOUNDARY.finditer(raw):
        yield raw[start : found.end()]
        start = found.end()
    if start < len(raw):
        yield raw[start:]


def _data(block: str) -> str:
    if block.startswith("data:") and "\n" not in block:
        return block[5:].strip()
    return "\n".join(line[5:].strip() for line in block.split("\n") if line.startswith("data:"))


class UsageEventFilter:
    """Takes out the chat wire's usage event, which we asked for and the client did not. All other bytes stay."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What may go on now: whole events."""
        held = self._held + chunk
        passed, start = [], 0
        for found in _BOUNDARY.finditer(held):
            event = held[start : found.end()]
            start = found.end()
            if not _only_usage(event):
                passed.append(event)
        self._held = held[start:]
        return b"".join(passed)

    def rest(self) -> bytes:
        """What came after the last whole event."""
        held, self._held = self._held, b""
        return held


def _only_usage(event: bytes) -> bool:
    if not _NO_CHOICES.search(event):
        return False
    return any(value.get("choices") == [] and value.get("usage") for value in json_events(event))
