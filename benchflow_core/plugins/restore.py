"""Undoes what importing a plugin must not do to the process it is imported into."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["put_back"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_POOLS = ("asyncio_", "ThreadPoolExecutor")
"""Threads that may well be somebody else's, and that end when they have nothing to do."""


@contextmanager
def put_back() -> Iterator[list[str]]:
    """Lists what was changed meanwhile, in words. The working directory and signals are put back, a thread is not."""
    changed: list[str] = []
    folder, handlers, threads = _folder(), _handlers(), set(threading.enumerate())
    try:
        yield changed
    finally:
        if folder is not None and _folder() != folder:
            os.chdir(folder)
            changed.append("changes the working directory")
        for number, handler in handlers.items():
            if signal.getsignal(number) != handler:
                with suppress(ValueError):  # not the main thread
                    signal.signal(number, handler)
                changed.append(f"takes over {signal.Signals(number).name}")
        new = set(threading.enumerate()) - threads
        if any(not thread.daemon and not thread.name.startswith(_POOLS) for thread in new):
            changed.append("starts a thread that keeps the command from ending")


def _folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def _handlers() -> dict[int, signal.Handlers]:
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    return {number: handler for number, handler in found.items() if handler is not None}  # type: ignore[misc]
