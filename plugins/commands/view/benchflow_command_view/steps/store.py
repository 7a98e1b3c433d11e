"""Steps on disk: memory holds where each one lies, and those that may still change."""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from threading import RLock
from typing import Any

__all__ = ["Step", "StepStore"]

Step = dict[str, Any]
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_HELD = 1 << 20
"""Bytes that wait in memory before they are written."""
_MOST_OPEN = 256
"""Tool calls that never end must not pile up: the oldest is put away as it stands."""


class StepStore:
    """Append-only in a temporary file that has no name. Safe to use from several threads."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="benchflow-view-", buffering=0)  # noqa: SIM115  as long as the store
        self._held = bytearray()
        self._end = 0
        self._offsets, self._lengths = array("q"), array("q")
        self.times = array("d")
        """When each step began, in seconds."""
        self._open: dict[int, Step] = {}
        self._low: list[int] = []
        """The lowest step that changed in each refresh so far."""
        self.lock = RLock()

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, step: Step, *, keep: bool = False) -> int:
        """Its number. `keep`: it may change until `close`; everybody holds the same dict."""
        number = step["n"] = len(self._offsets)
        self._offsets.append(-1)
        self._lengths.append(0)
        self.times.append(float(step.get("at") or 0.0))
        self._open[number] = step
        self.touch(number)
        if not keep:
            self.close(number)
        elif len(self._open) > _MOST_OPEN:
            self.close(next(iter(self._open)))
        return number

    def touch(self, number: int) -> None:
        if self._low:
            self._low[-1] = min(self._low[-1], number)
        else:
            self._low.append(number)

    def close(self, number: int) -> None:
        """Safe to call again."""
        step = self._open.pop(number, None)
        if step is None:
            return
        data = _encode(step).encode("utf-8", "replace")
        self._offsets[number], self._lengths[number] = self._end + len(self._held), len(data)
        self._held += data
        if len(self._held) > _HELD:
            self._flush()

    def _flush(self) -> None:
        view = memoryview(bytes(self._held))
        while view:
            view = view[self._file.write(view) :]
        self._end += len(self._held)
        self._held = bytearray()

    def reopen(self, number: int) -> Step:
        """A step that was put away and changes after all."""
        step = self._open.get(number)
        if step is None:
            step = self._open[number] = self.get(number)
        self.touch(number)
        return step

    def get(self, number: int) -> Step:
        with self.lock:
            if number in self._open:
                return dict(self._open[number])
            offset, length = self._offsets[number], self._lengths[number]
            if offset >= self._end:
                data = bytes(self._held[offset - self._end : offset - self._end + length])
            else:
                data = os.pread(self._file.fileno(), length, offset)
            step: Step = json.loads(data)
            return step

    # --- for those who watch it grow --------------------------------------------------------------------------

    @property
    def version(self) -> int:
        return len(self._low)

    def mark(self) -> int:
        """A new version begins: what changes from now on is of it."""
        with self.lock:
            self._low.append(1 << 62)
            return len(self._low)

    def changed_since(self, version: int) -> int | None:
        """The lowest step that changed in or after a version; `None`: none did."""
        low = min(self._low[max(version - 1, 0) :], default=1 << 62)
        return low if low < len(self) else None

    def dispose(self) -> None:
        self._file.close()
