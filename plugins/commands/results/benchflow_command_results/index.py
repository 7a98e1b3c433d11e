"""An index of finished rollouts, kept in the user's cache: a copy of a few fields, never trusted over the files.

A row is used only while its `result.json` is the same file as when it was read: inode, size, time of change. Whatever
was added, removed or edited is seen, because the folders are listed and every file is looked at each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.core import ResultFiles
from benchflow_core.contracts.outcomes import contested_scores
from benchflow_core.errors import BenchflowError

__all__ = ["JobFolder", "Row", "find_jobs", "read_rows"]

Row = dict[str, Any]
"""The fields of `result.json` that lists and statistics need, under the same names."""

_VERSION: Final = 2
_USAGE: Final = ("total_tokens", "n_input_tokens", "n_output_tokens", "cost_usd", "usage_source")
_LONGEST_MESSAGE: Final = 400
_SETTLED: Final = 2_000_000_000
"""Nanoseconds. A file changed more recently than this may change again within the same tick of the clock."""
_DEEPEST: Final = 8
_NOT_JOBS: Final = ("attempts", "verdicts")


@dataclass
class JobFolder:
    """A folder with rollouts in it."""

    path: str
    rollouts: dict[str, os.stat_result] = field(default_factory=dict)
    """Folder name to the state of its `result.json`."""
    unfinished: list[str] = field(default_factory=list)
    """Rollouts that were begun and have no result."""
    has_summary: bool = False


def find_jobs(root: Path) -> Iterator[JobFolder]:
    """Every folder below `root`, itself included, that holds rollouts or a summary. Rollouts are not looked into."""
    if (root / "result.json").is_file() and _is_rollout(root / "result.json"):
        yield JobFolder(str(root.parent), {root.name: (root / "result.json").stat()})
        return
    yield from _below(str(root), 0)


def _below(folder: str, depth: int) -> Iterator[JobFolder]:
    found = JobFolder(folder)
    deeper: list[str] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name == "summary.json":
            found.has_summary = True
        if entry.name.startswith(".") or entry.name in _NOT_JOBS or not entry.is_dir(follow_symlinks=False):
            continue
        try:
            found.rollouts[entry.name] = os.stat(f"{entry.path}/result.json")  # noqa: PTH116 - ten thousand of them
        except OSError:
            begun = any(Path(entry.path, name).exists() for name in ("config.json", "events.jsonl"))
            (found.unfinished if begun else deeper).append(entry.name)
    if found.rollouts or found.unfinished or found.has_summary:
        yield found
    for name in deeper if depth < _DEEPEST else ():
        yield from _below(f"{folder}/{name}", depth + 1)


def _is_rollout(path: Path) -> bool:
    with suppress(OSError, ValueError):
        value = json.loads(path.read_bytes())
        return isinstance(value, dict) and "task_name" in value
    return False


def read_rows(files: ResultFiles, job: JobFolder, cache: Path | None) -> list[Row]:
    """Return a row per finished rollout, from the index where it still holds, else from the files.

    Without a `cache` nothing is kept.
    """
    index = _Index(files, job.path, cache)
    rows, fresh = [], False
    for name, state in job.rollouts.items():
        row = index.get(name, state)
        if row is None:
            result = files.read_result(Path(job.path, name))
            fresh = True
            if result is None:
                continue
            row = _row_of(result, index.keys)
            index.put(name, state, row)
        row["rollout_dir"] = f"{job.path}/{name}"
        rows.append(row)
    if fresh or len(index.rows) > len(job.rollouts):
        index.save(job.rollouts)
    return rows


def _row_of(result: Mapping[str, Any], keys: Sequence[str]) -> Row:
    row: Row = {key: result.get(key) for key in keys}
    row["contested"] = contested_scores({"verification": None, **result})
    row["rollout_name"] = row["rollout_name"] or row["task_name"]
    for key in ("error", "verifier_error"):
        info = result.get(f"{key}_info")
        row[f"{key}_info"] = {k: info.get(k) for k in ("kind", "code", "retryable")} if info else None
        row[key] = row[key][:_LONGEST_MESSAGE] if isinstance(row[key], str) else row[key]
    used = result.get("agent_result") or {}
    row["agent_result"] = {key: used.get(key) for key in _USAGE}
    row["roles"] = {name: {k: r.get(k) for k in ("agent", "model")} for name, r in (row["roles"] or {}).items()}
    row["plugins"] = " ".join(sorted(f"{p['kind']}:{p['name']}={p['version']}" for p in result.get("plugins") or ()))
    return row


class _Index:
    """The rows of one folder, in one file. Lost, broken or old, it is only slower."""

    def __init__(self, files: ResultFiles, folder: str, cache: Path | None) -> None:
        self._files = files
        self.keys = [*files.columns(), "contested"]
        self.folder = os.path.realpath(folder)
        self.rows: dict[str, tuple[list[int], list[Any]]] = {}
        self._path = (
            cache / "index" / f"{hashlib.sha256(self.folder.encode()).hexdigest()[:32]}.json" if cache else None
        )
        self._now = time.time_ns()
        if self._path is None:
            return
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            data = json.loads(self._path.read_bytes())
            if (data["version"], data["folder"], data["keys"]) == (_VERSION, self.folder, self.keys):
                self.rows = {name: (mark, values) for name, mark, values in data["rows"]}

    def get(self, name: str, state: os.stat_result) -> Row | None:
        found = self.rows.get(name)
        if found is None or found[0] != _mark(state) or len(found[1]) != len(self.keys):
            return None
        return dict(zip(self.keys, found[1], strict=True))

    def put(self, name: str, state: os.stat_result, row: Row) -> None:
        settled = self._now - max(state.st_mtime_ns, state.st_ctime_ns) > _SETTLED
        if settled and (row["error_info"] or {}).get("code") != "unreadable_result":
            self.rows[name] = (_mark(state), [row[key] for key in self.keys])
        else:
            self.rows.pop(name, None)

    def save(self, present: Mapping[str, Any]) -> None:
        if self._path is None:
            return
        rows = [[name, mark, values] for name, (mark, values) in self.rows.items() if name in present]
        data = {"version": _VERSION, "folder": self.folder, "keys": self.keys, "rows": rows}
        with suppress(BenchflowError, OSError):  # a cache that cannot be written costs time, nothing else
            self._files.write(self._path, json.dumps(data, separators=(",", ":")).encode())


def _mark(state: os.stat_result) -> list[int]:
    return [state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns]
