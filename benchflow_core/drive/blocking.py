"""A coroutine that never lets go of the event loop cannot be timed out from inside it: a thread and a signal do it."""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

__all__ = ["Blocked", "not_blocking"]

_EVERY: Final = 1.0
_watched: set[Any] = set()
"""Coroutines whose time is up."""


class Blocked(TimeoutError):
    """Raised in the middle of the code that holds the event loop."""


@contextmanager
def not_blocking(work: Any, seconds: float) -> Iterator[None]:
    """While a coroutine is awaited: if it still runs, and nothing else can, `seconds` from now, it gets `Blocked`.

    Only in the main thread, which alone hears signals, and only where nobody else listens to this one.
    """
    if not inspect.iscoroutine(work) or not _listening():
        yield
        return
    over = threading.Event()

    def watch() -> None:
        limit = seconds + _EVERY  # asyncio's own comes first where the loop is alive
        while not over.wait(limit):
            limit = _EVERY
            _watched.add(work)
            if work.cr_running:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    threading.Thread(target=watch, name="benchflow-user-watch", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        _watched.discard(work)


def _listening() -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
        signal.signal(signal.SIGALRM, _wake)
    return signal.getsignal(signal.SIGALRM) is _wake


def _wake(number: int, frame: FrameType | None) -> None:
    """It may have let go in the meantime; whoever runs then is not to blame."""
    if any(work.cr_running for work in list(_watched)):
        raise Blocked
