"""How far a job is, counted from what its journal says. Plain numbers: displays differ, this does not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

__all__ = ["Tracker", "amount", "span"]

_ARMS = 6
"""Shown at once while a job runs."""


class Tracker:
    """Feed it `hear`; read the rest."""

    def __init__(self) -> None:
        self.total = self.done = self.passed = self.failed = self.unscored = self.retries = 0
        self.before = 0
        """Finished in an earlier run of the job."""
        self.tokens = 0
        self.cost = 0.0
        self.arms: dict[str, tuple[int, int]] = {}
        """Passed and scored of each arm; empty where there are none."""
        self.running: dict[str, dict[str, Any]] = {}
        self.stopping: str | None = None
        self._started = self._now = 0.0

    def hear(self, kind: str, data: Mapping[str, Any]) -> None:
        at = float(data.get("time") or time.time())
        self._now = at if kind == "planned" else max(self._now, at)
        if kind == "planned":
            self.total, self.before = data["total"], data.get("done", 0)
            self.done, self._started = self.before, self._now
            self.passed = self.failed = self.unscored = 0
            self.arms.clear()
            self.running.clear()
            self.stopping = None
        elif kind == "started":
            self.running[data["rollout"]] = {"phase": "start", **data}
        elif kind == "retry":
            self.retries += 1
            self.running.pop(data["rollout"], None)
        elif kind == "finished":
            self._finished(data)
        elif kind in ("draining", "stopped"):
            self.stopping = data["reason"]
        elif kind == "live":
            self.running = {row["rollout"]: {**self.running.get(row["rollout"], {}), **row} for row in data["running"]}
            self.tokens, self.cost = data["tokens"], data["cost_usd"]

    def _finished(self, data: Mapping[str, Any]) -> None:
        self.done += 1
        self.running.pop(data["rollout_name"], None)
        reward = (data.get("rewards") or {}).get("reward")
        if reward is None:
            self.unscored += 1
            return
        passed = reward == 1
        self.passed += passed
        self.failed += not passed
        if arm := data.get("arm"):
            before = self.arms.get(arm, (0, 0))
            self.arms[arm] = (before[0] + passed, before[1] + 1)

    @property
    def seconds(self) -> float:
        return self._now - self._started

    @property
    def eta(self) -> float | None:
        """Seconds to go at the pace so far; unknown until something is finished."""
        here = self.done - self.before
        if here < 1 or self.stopping:
            return None
        return self.seconds / here * (self.total - self.done)

    def counts(self) -> str:
        earlier = f", {self.before} from before" if self.before else ""
        retries = f", {self.retries} tried again" if self.retries else ""
        return f"{self._passed()}, {self.unscored} unscored{retries}{earlier}"

    def _passed(self) -> str:
        """Of each arm by itself: a sum over arms says nothing about any of them."""
        if len(self.arms) < 2:
            return f"{self.passed} passed, {self.failed} failed"
        shown = [f"{arm} {passed}/{scored}" for arm, (passed, scored) in sorted(self.arms.items())]
        more = f" and {len(shown) - _ARMS} more" if len(shown) > _ARMS else ""
        return f"passed: {', '.join(shown[:_ARMS])}{more}"

    def spent(self) -> str:
        if not self.tokens:
            return ""
        return f"{amount(self.tokens)} tokens" + (f", {self.cost:.2f} USD" if self.cost else "")

    def left(self) -> str:
        if self.stopping:
            return "finishing what runs"
        return f"about {span(self.eta)} left" if self.eta is not None else ""


def span(seconds: float | None) -> str:
    """`12 s`, `3 min`, `2 h 05`."""
    if seconds is None:
        return "?"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d}"


def amount(number: float) -> str:
    """`950`, `12.3k`, `4.1M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:g}"
