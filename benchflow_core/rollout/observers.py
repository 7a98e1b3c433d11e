"""Observers hear what happens, off the event loop. What one raises is one warning, never a failure of the run."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from benchflow_core.contracts.events import Event
from benchflow_core.plugins import Loaded

__all__ = ["ObserverBus"]

_FLUSH_SECONDS = 10.0
_BACKLOG = 10_000
"""Events an observer may lag behind before the oldest are dropped for it: memory stays bounded."""


class ObserverBus:
    """One thread and one queue per observer, so that a slow one holds up nobody."""

    def __init__(self, observers: Sequence[Loaded], warn: Callable[[str], None]) -> None:
        self._lanes = [_Lane(observer, warn) for observer in observers]

    def send(self, event: Event) -> None:
        for lane in self._lanes:
            lane.send(event)

    @property
    def active(self) -> bool:
        return bool(self._lanes)

    def close(self) -> None:
        """All of them have the same few seconds, together."""
        end = time.monotonic() + _FLUSH_SECONDS
        for lane in self._lanes:
            lane.ask_to_end(end)
        for lane in self._lanes:
            lane.close(end)


def _line(observer: Loaded, error: BaseException) -> str:
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    owner = f"{observer.distribution} {observer.version}"
    return f"{observer.kind} {observer.name} ({owner}) failed: {said}. Disable it with -p no:{observer.name}"


class _Lane:
    def __init__(self, observer: Loaded, warn: Callable[[str], None]) -> None:
        self._observer = observer
        self._warn = warn
        self._warned = False
        self._queue: queue.Queue[Any] = queue.Queue(_BACKLOG)
        self._thread = threading.Thread(target=self._run, name=f"observer-{observer.name}", daemon=True)
        self._thread.start()

    def send(self, event: Event) -> None:
        wanted = self._observer.spec.events
        if wanted and not isinstance(event, wanted):
            return
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self._complain(RuntimeError(f"{_BACKLOG} events behind, dropping some"))

    def ask_to_end(self, end: float) -> None:
        with suppress(queue.Full):
            self._queue.put(None, timeout=max(0.0, end - time.monotonic()))

    def close(self, end: float) -> None:
        self._thread.join(max(0.0, end - time.monotonic()))
        if self._thread.is_alive():
            self._complain(TimeoutError(f"still busy after {_FLUSH_SECONDS:.0f} s, left behind"))

    def _complain(self, error: BaseException) -> None:
        if not self._warned:
            self._warned = True
            self._warn(_line(self._observer, error))

    def _run(self) -> None:
        spec = self._observer.spec
        while (event := self._queue.get()) is not None:
            self._guard(lambda e=event: spec.on_event(e))  # type: ignore[misc]
        if spec.flush is not None:
            self._guard(spec.flush)

    def _guard(self, call: Callable[[], Any]) -> None:
        try:
            answer = call()
            if isinstance(answer, Coroutine):
                answer.close()
                raise TypeError("it is async, and nobody awaits it: an observer is a plain function in a thread")
        except BaseException as error:
            self._complain(error)
