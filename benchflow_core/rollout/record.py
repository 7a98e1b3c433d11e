"""The written side of a rollout: its folder, its event log, its running totals, what observers hear."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchflow_core.contracts import events as ev
from benchflow_core.results.eventlog import EventLog
from benchflow_core.results.files import read_jsonl, write_jsonl
from benchflow_core.results.layout import RolloutDir
from benchflow_core.results.redact import Redactor
from benchflow_core.results.trajectory import CONCERNED, Counts, trajectory
from benchflow_core.rollout.observers import ObserverBus

__all__ = ["Record"]


class Record:
    """Everything a rollout says goes through here, so that it is said once and redacted always."""

    def __init__(self, root: Path, job: str, redactor: Redactor, bus: ObserverBus | None) -> None:
        self.dir = RolloutDir(root)
        self.job = job
        self.redactor = redactor
        self.counts = Counts()
        self.prompts: list[dict[str, Any]] = []
        self.rewards: list[dict[str, Any]] = []
        self._bus = bus
        self.log = EventLog(self.dir.events, redactor, self.counts.see)

    def event(self, kind: str, data: Mapping[str, Any] | None = None, **place: Any) -> dict[str, Any]:
        return self.log.write(kind, data, **place)

    def tell(self, make: type[ev.Event], **fields: Any) -> None:
        """Send an event to the observers, if there are any."""
        if self._bus is not None and self._bus.active:
            self.log.flush()  # observers read the log from disk, in threads of their own
            self._bus.send(make(time=time.time(), job=self.job, job_dir=self.dir.root.parent, **fields))

    def reward(self, value: float, kind: str, source: str, **more: Any) -> None:
        row = {"time": time.time(), "type": kind, "source": source, "value": value, **more}
        self.rewards.append(row)
        self.event("reward", row)

    def slice(self, since: int) -> Sequence[Mapping[str, Any]]:
        """The events after number `since`, read back from disk."""
        self.log.flush()
        return [event for event in read_jsonl(self.dir.events) if event["seq"] > since]

    def finish(self) -> None:
        """Close the log and derive the views."""
        self.log.close()
        entries = trajectory(read_jsonl(self.dir.events, CONCERNED))
        write_jsonl(self.dir.trajectory, map(self.redactor.value, entries))
