"""The requests a gateway carried, and the step each of them led to."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from pathlib import Path
from typing import Any

from benchflow_command_view.clock import seconds_of
from benchflow_command_view.steps.spans import Spans
from benchflow_command_view.steps.store import StepStore

__all__ = ["Traffic"]

_LISTED = 5000
_LARGEST = 4 << 20


class Traffic:
    """Reads `llm_trajectory.jsonl` once per change; keeps where each line lies and a few numbers of it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._mark: tuple[int, int] | None = None
        self._offsets: array[int] = array("q")
        self.calls: list[dict[str, Any]] = []
        self._by_step: dict[int, list[int]] = {}
        self.spans = Spans()

    def refresh(self, started: float | None, store: StepStore) -> None:
        """The file is written in one piece when a rollout's models are done, so a change means all of it."""
        if self._path is None or not self._path.is_file():
            return
        state = self._path.stat()
        if (state.st_mtime_ns, state.st_size) == self._mark:
            return
        self._mark = (state.st_mtime_ns, state.st_size)
        self._offsets, self.calls, self._by_step, self.spans = array("q"), [], {}, Spans()
        with self._path.open("rb") as stream:
            while True:
                offset = stream.tell()
                line = stream.readline()
                if not line:
                    return
                try:
                    self._add(json.loads(line), offset, started, store)
                except (ValueError, TypeError, AttributeError, KeyError):
                    continue

    def _add(self, exchange: dict[str, Any], offset: int, started: float | None, store: StepStore) -> None:
        meta, usage = exchange.get("metadata") or {}, exchange.get("usage") or {}
        begin = seconds_of((exchange.get("request") or {}).get("timestamp"))
        at = begin - started if begin is not None and started is not None else None
        seconds = float(exchange.get("duration_ms") or 0) / 1000
        number = len(self._offsets)
        step = self._led_to(at, meta, store)
        self._offsets.append(offset)
        if step is not None:
            self._by_step.setdefault(step, []).append(number)
        if at is not None:
            label = str(meta.get("provider_model") or meta.get("request_model") or "model")
            self.spans.add("model", at, at + seconds, -1 if step is None else step, label)
        if len(self.calls) < _LISTED:
            status = (exchange.get("response") or {}).get("status_code")
            self.calls.append(
                {
                    "n": number,
                    "at": at,
                    "seconds": seconds,
                    "model": meta.get("provider_model") or meta.get("request_model"),
                    "role": meta.get("role"),
                    "turn": meta.get("turn"),
                    "purpose": meta.get("call_purpose"),
                    "status": status,
                    "error": (exchange.get("error") or {}).get("message") if exchange.get("error") else None,
                    "input": usage.get("input_tokens"),
                    "output": usage.get("output_tokens"),
                    "cached": usage.get("cache_read_tokens"),
                    "cost": usage.get("cost_usd"),
                    "step": step,
                }
            )

    def _led_to(self, at: float | None, meta: dict[str, Any], store: StepStore) -> int | None:
        """The first thing that was said or done after the request was sent, in the same turn."""
        if at is None:
            return None
        # A request's own clock reading may lie a moment behind that of the log.
        first = bisect_left(store.times, at - 0.005)
        for number in range(first, min(first + 50, len(store))):
            step = store.get(number)
            here = meta.get("turn") is None or step.get("turn") == meta.get("turn")
            if here and step.get("type") in ("message", "thought", "tool", "plan", "turn_end"):
                return number
        return None

    def of_step(self, number: int) -> list[int]:
        return self._by_step.get(number, [])

    def __len__(self) -> int:
        return len(self._offsets)

    def get(self, number: int) -> dict[str, Any]:
        """One exchange, request and response as they were."""
        if self._path is None or not 0 <= number < len(self._offsets):
            raise KeyError(number)
        with self._path.open("rb") as stream:
            stream.seek(self._offsets[number])
            line = stream.readline(_LARGEST + 1)
        if len(line) > _LARGEST:
            return {"n": number, "too_large": True}
        return {"n": number, **json.loads(line)}
