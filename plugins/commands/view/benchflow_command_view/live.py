"""What an open page is told, as server-sent events: that something changed, and the state of what runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchflow_command_view.documents import Documents
from benchflow_command_view.job_page import mark_of
from benchflow_command_view.waiting import Waiting

__all__ = ["live_events"]

_EVERY = 0.5
_BREATH = 0.02
"""Between two parts of a long log that is still being read: others get their turn."""
_BEAT = 15.0
_FOLLOWED = 64
"""Running rollouts whose logs are followed at a time."""


def live_events(documents: Documents, names: list[str]) -> Iterator[bytes]:
    """One message per change, and a comment now and then so that a reader who went away is noticed.

    `KeyError`: there is no such job or rollout.
    """
    looks: dict[int, Callable[..., Callable[[], dict[str, Any]]]] = {0: _Jobs, 1: _Job, 2: _Rollout}
    return _messages(looks[len(names)](documents, *names))


def _messages(look: Callable[[], dict[str, Any]]) -> Iterator[bytes]:
    last, spoke = None, time.monotonic()
    yield b"retry: 2000\n\n"
    while True:
        state = look()
        text = json.dumps(state, ensure_ascii=False, separators=(",", ":"), default=str)
        if text != last:
            last, spoke = text, time.monotonic()
            yield f"data: {text}\n\n".encode("utf-8", "replace")
        elif time.monotonic() - spoke > _BEAT:
            spoke = time.monotonic()
            yield b": still here\n\n"
        time.sleep(_EVERY if state.get("complete", True) else _BREATH)


class _Jobs:
    """The list of jobs: which are there, and which changed."""

    def __init__(self, documents: Documents) -> None:
        self._catalogue = documents.catalogue

    def __call__(self) -> dict[str, Any]:
        return {"marks": {jid: mark_of(place.path) for jid, place in self._catalogue.jobs().items()}}


class _Job:
    """One job: how far it is, what runs, and what each rollout waits on."""

    def __init__(self, documents: Documents, jid: str) -> None:
        self._reader = documents.reader
        self._path = documents.catalogue.job(jid).path
        self._waiting: dict[str, Waiting] = {}

    def __call__(self) -> dict[str, Any]:
        live = self._reader.live(self._path)
        state: dict[str, Any] = {"mark": mark_of(self._path), "running": bool(live)}
        if live:
            keys = ("left", "tokens", "cost_usd", "stopping")
            state |= {key: live.get(key) for key in keys}
            state["rollouts"] = self._rollouts(live.get("running"))
        return state

    def _rollouts(self, running: Any) -> list[dict[str, Any]]:
        rows = [row for row in running if isinstance(row, dict)][:_FOLLOWED] if isinstance(running, list) else []
        names = {str(row.get("rollout")) for row in rows}
        self._waiting = {name: one for name, one in self._waiting.items() if name in names}
        return [{**row, "waits": self._look(str(row.get("rollout")))} for row in rows]

    def _look(self, name: str) -> dict[str, Any]:
        if name not in self._waiting:
            self._waiting[name] = Waiting(Path(self._path, Path(name).name, "events.jsonl"))
        return self._waiting[name].look()


class _Rollout:
    """One rollout: how many steps it has, and from which on they changed."""

    def __init__(self, documents: Documents, jid: str, rid: str) -> None:
        self._documents, self._folder = documents, documents.folder(jid, rid)
        self._waiting = Waiting(self._folder / "events.jsonl")
        self._version = documents.source(self._folder, 0.0).store.mark()
        self._changes, self._low = 0, 0

    def __call__(self) -> dict[str, Any]:
        source = self._documents.source(self._folder, _EVERY)
        store = source.store
        low = store.changed_since(self._version)
        if low is not None:
            self._changes, self._low = self._changes + 1, low
            self._version = store.mark()
        running = self._folder.is_dir() and not (self._folder / "result.json").exists()
        state = {"steps": len(store), "changes": self._changes, "from": self._low, "running": running}
        state["complete"] = source.complete
        return {**state, **({"waits": self._waiting.look()} if running else {})}
