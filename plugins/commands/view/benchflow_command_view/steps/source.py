"""The steps of one rollout or session, read as far as its log has come."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Any

from benchflow_command_view.sessions import UNKNOWN, SessionFormat, translator_for
from benchflow_command_view.steps.builder import StepBuilder
from benchflow_command_view.steps.lines import BROKEN, Lines
from benchflow_command_view.steps.page import PAGE, shown
from benchflow_command_view.steps.store import StepStore
from benchflow_command_view.traffic import Traffic

__all__ = ["StepSource"]


class StepSource:
    """Refreshed when it is looked at. `finished`: a last line without an end counts, too."""

    def __init__(self, log: Path, traffic: Path | None = None) -> None:
        self.log = log
        self.store = StepStore()
        self.builder = StepBuilder(self.store)
        self.traffic = Traffic(traffic)
        self.format = ""
        self.complete = False
        """Everything that is in the log by now was read."""
        self.not_understood: Counter[str] = Counter()
        self._lines = Lines(log)
        self._translate: SessionFormat | None = None
        self._lock = Lock()

    def refresh(self, *, finished: bool = True, seconds: float = float("inf")) -> None:
        """For about so long: a large log is shown from its beginning while the rest is still being read."""
        with self._lock:
            until = time.monotonic() + seconds
            self.complete = False
            for number, line in enumerate(self._lines.new()):
                self._take(line)
                if number % 64 == 63 and time.monotonic() > until:
                    break
            else:
                self.complete = True
                for line in self._lines.rest() if finished else ():
                    self._take(line)
                self.traffic.refresh(self.builder.started, self.store)
            with self.store.lock:
                self.builder.join_text()

    def _take(self, line: dict[str, Any]) -> None:
        if line.get("kind") == BROKEN and set(line) == {"kind", "data"}:
            self.not_understood["a line that is no JSON object"] += 1
            self.builder.feed(line)
            return
        if self._translate is None or self.format == UNKNOWN:  # what comes first may be a stray line
            self._translate = translator_for(line)
            self.format = self._translate.name
        for event in self._translate(line):
            if event["kind"] == BROKEN:
                self.not_understood[str(event["data"].get("what"))[:100]] += 1
            self.builder.feed(event)

    @property
    def pages(self) -> int:
        return -(-len(self.store) // PAGE)

    def page(self, number: int) -> list[dict[str, Any]]:
        first = number * PAGE
        last = min(first + PAGE, len(self.store))
        return [self._with_calls(shown(self.store.get(n))) for n in range(first, last)]

    def step(self, number: int) -> dict[str, Any]:
        """Return one step in full."""
        return self._with_calls(shown(self.store.get(number), whole=True))

    def _with_calls(self, step: dict[str, Any]) -> dict[str, Any]:
        if calls := self.traffic.of_step(step["n"]):
            step["calls"] = calls
        return step

    def outline(self, now: float | None = None) -> dict[str, Any]:
        """What the page of a rollout needs before it shows a step. `now`: of one that runs, the Unix time."""
        last = self.store.times[-1] if len(self.store) else 0.0
        more = [self.traffic.spans]
        if now is not None and self.builder.started is not None:
            last = max(last, now - self.builder.started)
            more.append(self.builder.under_way(last))
        return {
            "steps": len(self.store),
            "complete": self.complete,
            "page": PAGE,
            "format": self.format,
            "turns": self.builder.turns[:5000],
            "started": self.builder.started,
            "timeline": self.builder.spans.thinned(more, last),
            "not_understood": dict(self.not_understood.most_common(20)),
        }

    def dispose(self) -> None:
        self.store.dispose()
