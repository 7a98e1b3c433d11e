"""The bus between a job and its observers: each in a thread of its own, none waited for longer than the others."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from benchflow_core.contracts import Event, JobStarted, ObserverSpec
from benchflow_core.plugins import Loaded
from benchflow_core.rollout import observers
from benchflow_core.rollout.observers import ObserverBus


def loaded(name, on_event) -> Loaded:
    return Loaded("observer", name, "someones-watch", "1.0", ObserverSpec(summary=name, on_event=on_event))


def test_an_async_observer_is_named_and_blocked_ones_share_the_wait(monkeypatch):
    monkeypatch.setattr(observers, "_FLUSH_SECONDS", 2.0)
    let_go, heard, said = threading.Event(), [], []

    async def asynchronous(event: Event) -> None:
        heard.append("never")

    blocked = [loaded(f"blocked-{n}", lambda event: let_go.wait()) for n in range(5)]
    fine = loaded("fine", lambda event: heard.append(event.job))
    bus = ObserverBus([*blocked, loaded("async", asynchronous), fine], said.append)
    bus.send(JobStarted(time=0.0, job="one", job_dir=Path(), planned=1, config={}))
    began = time.monotonic()
    bus.close()
    assert time.monotonic() - began < 8.0  # one after the other would be ten
    let_go.set()
    assert heard == ["one"]
    asked = [
        line for line in said if line.startswith("observer async (someones-watch 1.0) failed: TypeError: it is async")
    ]
    assert len(asked) == 1
    assert sum("still busy after 2 s, left behind. Disable it with -p no:blocked-" in line for line in said) == 5
