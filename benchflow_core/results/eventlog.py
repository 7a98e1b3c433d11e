"""`events.jsonl`: everything that happened, append-only, one versioned line each. All other views derive from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchflow_core.results.clock import stamp
from benchflow_core.results.encode import encoder
from benchflow_core.results.files import cannot_write
from benchflow_core.results.pieces import Pieces
from benchflow_core.results.redact import Redactor
from benchflow_core.results.trajectory import CHUNKS, with_text

__all__ = ["EVENT_VERSION", "EventLog"]

EVENT_VERSION = 1
_FLUSH_EVERY = 0.25
"""Seconds a line may wait in memory: a kill loses at most this much, a flood costs no system call per line."""

_encode = encoder(compact=True)


class EventLog:
    """One writer per rollout. Memory does not grow with the number of events."""

    def __init__(
        self, path: Path, redactor: Redactor, on_event: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self.path = path
        self._redactor = redactor
        self._pieces = Pieces(redactor)
        self._on_event = on_event
        self._started = time.monotonic()
        self._flushed = self._started
        self._seq = 0
        self._broken = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8", errors="replace", buffering=1 << 16)
        except OSError as error:
            raise cannot_write(path, error) from error

    @property
    def count(self) -> int:
        return self._seq

    def write(
        self,
        kind: str,
        data: Mapping[str, Any] | None = None,
        *,
        scene: str | None = None,
        role: str | None = None,
        turn: int | None = None,
        session: str | None = None,
    ) -> dict[str, Any]:
        """Append one event and return it as written."""
        place = {"scene": scene, "role": role, "turn": turn, "session": session}
        if kind not in CHUNKS:
            self._say_the_rest()
        elif data is not None:
            data = with_text(data, lambda text: self._pieces.add((kind, *place.items()), text))
        return self._write(kind, data or {}, place)

    def _say_the_rest(self) -> None:
        """A message is over: what looked like the beginning of a secret was none."""
        for (kind, *place), text in self._pieces.waiting().items():
            self._write(kind, {"sessionUpdate": kind, "content": {"type": "text", "text": text}}, dict(place))

    def _write(self, kind: str, data: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, Any]:
        clock = time.monotonic()
        self._seq += 1
        event: dict[str, Any] = {
            "v": EVENT_VERSION,
            "seq": self._seq,
            "time": stamp(time.time()),
            "at": round(clock - self._started, 6),
            "kind": kind,
        }
        event |= {name: value for name, value in place.items() if value is not None}
        event["data"] = data
        if not self._broken and not self._file.closed:  # what cannot be written is told after the log was closed
            self._append(self._redactor.json_text(_encode(event), _encode), clock)
        if self._on_event is not None:
            self._on_event(event)
        return event

    def _append(self, line: str, clock: float) -> None:
        """The first failure is raised; after it nothing is written, so that tearing down is not held up."""
        try:
            self._file.write(f"{line}\n")
            if clock - self._flushed > _FLUSH_EVERY:
                self._flush()
        except OSError as error:
            self._broken = True
            raise cannot_write(self.path, error) from error

    def flush(self) -> None:
        if self._broken or self._file.closed:
            return
        try:
            self._flush()
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        self._file.flush()

    def close(self) -> None:
        """Safe to call again."""
        self._say_the_rest()
        try:
            self._file.close()
        except OSError as error:
            if not self._broken:
                self._broken = True
                raise cannot_write(self.path, error) from error
