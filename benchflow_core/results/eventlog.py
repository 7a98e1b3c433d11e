"""`events.jsonl`: everything that happened, append-only, one versioned line each. All other views derive from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchflow_core.results.clock import stamp
from benchflow_core.results.files import cannot_write, encoder
from benchflow_core.results.pieces import Pieces
from benchflow_core.results.redact import Redactor
from benchflow_core.results.trajectory import CHUNKS, with_text

__all__ = ["EVENT_VERSION", "EventLog"]

EVENT_VERSION = 1
_FLUSH_EVERY = 0.25
"""Seconds a line may wait in memory: a kill loses at most this much, a flood costs no system call per line."""

_ROOM = 64 << 20
"""Characters of agents' updates that a rollout keeps: memory and disk are bounded, whatever agents print."""
_LONGEST = 256 << 10
"""Characters of one text in an update. The beginning and the end of a longer one are kept."""

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
        self._room = _ROOM
        self._left_out = 0
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
        line = self._bounded(event) if "sessionUpdate" in data else _encode(event)
        if line is None:
            return event
        if not self._broken and not self._file.closed:  # what cannot be written is told after the log was closed
            self._append(self._redactor.json_text(line, _encode), clock)
        if self._on_event is not None:
            self._on_event(event)
        return event

    def _bounded(self, event: dict[str, Any]) -> str | None:
        """Return the line of an agent's update as short as it may be; `None` where there is no room left for it."""
        line = _encode(event)
        size = len(line)
        if size > _LONGEST:
            event["data"] = _shortened(self._redactor.value(event["data"]))  # a secret that is cut in two is not found
            line = _encode(event)
        kept = len(line) if len(line) <= min(self._room, 16 * _LONGEST) else 0
        self._left_out += size - kept
        self._room -= kept
        return line if kept else None

    @property
    def cut(self) -> str | None:
        """Say what was left out of the log, if something was."""
        if not self._left_out:
            return None
        return (
            f"{self._left_out / 1e6:.1f} MB of what agents sent are not in events.jsonl, which keeps {_ROOM >> 20} MB "
            f"of it, and {_LONGEST >> 10} kB of one text."
        )

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


def _shortened(value: Any) -> Any:
    """A JSON value whose long texts lost their middle."""
    if isinstance(value, str) and len(value) > _LONGEST:
        half = _LONGEST // 2
        return f"{value[:half]}\n[... {len(value) - 2 * half} characters left out ...]\n{value[-half:]}"
    if isinstance(value, Mapping):
        return {key: _shortened(item) for key, item in value.items()}
    return [_shortened(item) for item in value] if isinstance(value, list | tuple) else value
