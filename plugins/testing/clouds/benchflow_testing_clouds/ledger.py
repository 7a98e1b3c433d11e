"""What clients asked, what they did wrong, and what goes wrong next on purpose."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Fault", "Ledger"]


@dataclass
class Fault:
    """What happens to the next `times` requests whose route begins with `route`, e.g. `POST /sandbox`.

    A number of a box at the start of a path is not part of a route; see what `Remote.requests` counts.
    """

    route: str = ""
    times: int = 1
    status: int = 0
    """Answer with this status instead: 429, 500, 503 …"""
    retry_after: float | None = None
    body: str = ""
    delay: float = 0.0
    """Seconds before the request is handled: a slow start."""
    drop: bool = False
    """Close the connection without an answer."""
    after_bytes: int | None = None
    """Cut a stream or a download after so many bytes."""
    die: bool = False
    """The box ends, as if its machine had."""
    skip: int = 0
    """Let so many matching requests pass first."""


class Ledger:
    """Kept by a server, read and written by a test through the control port."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.violations: list[str] = []
        self.faults: list[Fault] = []
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        """Of each route: how many are being answered, and how many were at most at once."""
        self.seconds: dict[str, float] = defaultdict(float)
        """And how long answers took, together."""

    def count(self, route: str) -> Fault | None:
        """One more request; what is to go wrong with it, if anything is."""
        self.requests[route] += 1
        for fault in self.faults:
            if route.startswith(fault.route):
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    def enter(self, route: str) -> float:
        """When it began."""
        self.now[route] += 1
        self.most[route] = max(self.most[route], self.now[route])
        return time.monotonic()

    def leave(self, route: str, began: float) -> None:
        self.now[route] -= 1
        self.seconds[route] += time.monotonic() - began

    def violation(self, text: str) -> None:
        """Something that the vendor would not understand: the test fails."""
        self.violations.append(text)

    def state(self) -> dict[str, Any]:
        return {
            "requests": dict(self.requests),
            "violations": list(self.violations),
            "faults": [asdict(fault) for fault in self.faults],
            "most": dict(self.most),
            "seconds": dict(self.seconds),
        }

    def reset(self) -> None:
        for part in (self.requests, self.violations, self.faults, self.most, self.seconds):
            part.clear()
