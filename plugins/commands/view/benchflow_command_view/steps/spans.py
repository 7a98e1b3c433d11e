"""What took how long, for the timeline: compact in memory, thinned out where it is drawn."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

__all__ = ["LANES", "Spans"]

LANES = ("phase", "turn", "model", "tool")
_PIXELS = 1200
_LONGEST_LABEL = 80


class Spans:
    """Start and end in seconds, the lane, the step it belongs to."""

    def __init__(self) -> None:
        self._lanes, self._starts, self._ends, self._steps = array("b"), array("d"), array("d"), array("q")
        self._labels: list[str] = []
        self._label_of = array("l")
        self._known: dict[str, int] = {}

    def add(self, lane: str, start: float, end: float, step: int, label: str) -> None:
        label = label[:_LONGEST_LABEL]
        if label not in self._known:
            if len(self._labels) > 5000:  # titles of tool calls are free text: a bounded number of them is kept
                label = label[:12]
            self._known.setdefault(label, len(self._labels))
            if self._known[label] == len(self._labels):
                self._labels.append(label)
        self._lanes.append(LANES.index(lane))
        self._starts.append(start)
        self._ends.append(max(start, end))
        self._steps.append(step)
        self._label_of.append(self._known[label])

    def thinned(self, more: Sequence[Spans] = (), last: float = 0.0) -> dict[str, Any]:
        """From the beginning to `last`, or beyond. About as many per lane as a screen has pixels: neighbours that would
        be drawn as one are one."""
        rows = sorted(row for spans in (self, *more) for row in spans._rows())
        end = max((row[2] for row in rows), default=last)
        begin, end = min([0.0, *(row[1] for row in rows)]), max(end, last)
        grain = (end - begin) / _PIXELS
        kept: list[list[Any]] = []
        for lane, start, stop, step, label in rows:
            before = kept[-1] if kept else None
            if before and before[0] == lane and stop - before[1] < grain and lane > 1:
                before[2], before[5] = max(before[2], stop), before[5] + 1
            else:
                kept.append([lane, round(start, 4), round(stop, 4), step, label, 1])
        return {"lanes": list(LANES), "begin": begin, "end": end, "spans": kept}

    def _rows(self) -> list[tuple[int, float, float, int, str]]:
        labels = [self._labels[i] for i in self._label_of]
        return list(zip(self._lanes, self._starts, self._ends, self._steps, labels, strict=True))
