"""`journal.jsonl`: what a job did, one line each as it happens. Displays follow it; the truth is in the results.

Whoever watches a job from another process replays these lines, so a detached job looks the same as one in front of you.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchflow_core.results.files import cannot_write, encoder
from benchflow_core.results.redact import Redactor

__all__ = ["JOURNAL", "Journal", "follow", "read_journal"]

JOURNAL = "journal.jsonl"
Line = tuple[str, dict[str, Any]]
_encode = encoder(compact=True)


class Journal:
    """Append-only. Each line is one write, so that a kill leaves whole lines but for the last."""

    def __init__(self, job_dir: Path, redactor: Redactor) -> None:
        self._path = job_dir / JOURNAL
        self._redactor = redactor
        try:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        self._mend()

    def _mend(self) -> None:
        """A line that a kill cut short is ended, so that the next one is readable."""
        if os.fstat(self._fd).st_size:
            with self._path.open("rb") as stream:
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    os.write(self._fd, b"\n")

    def write(self, kind: str, data: Mapping[str, Any]) -> None:
        line = _encode({"time": round(time.time(), 3), "kind": kind, "data": data})
        line = self._redactor.json_text(line, _encode)
        with suppress(OSError):  # a display is not worth a job: results say that the disk is full
            os.write(self._fd, f"{line}\n".encode("utf-8", "replace"))

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def read_journal(job_dir: Path) -> Iterator[Line]:
    """Every line so far that can be read."""
    return _lines(job_dir, lambda: True, 0)


def follow(job_dir: Path, ended: Callable[[], bool], tick: Callable[[], None], every: float = 0.25) -> Iterator[Line]:
    """The lines of the job's last run so far and those to come, until `ended()` and nothing is left to read."""

    def wait() -> bool:
        over = ended()
        if not over:
            tick()
            time.sleep(every)
        return over

    return _lines(job_dir, wait, _last_run(job_dir))


def _last_run(job_dir: Path) -> int:
    """Where the lines of the latest run begin."""
    with suppress(OSError):
        data = (job_dir / JOURNAL).read_bytes()
        return data.rfind(b"\n", 0, max(data.rfind(b'"kind":"planned"'), 0)) + 1
    return 0


def _lines(job_dir: Path, over: Callable[[], bool], start: int) -> Iterator[Line]:
    held = b""
    try:
        stream = (job_dir / JOURNAL).open("rb")
    except OSError:
        return
    with stream:
        stream.seek(start)
        while True:
            last = over()
            while chunk := stream.read(1 << 16):
                *whole, held = (held + chunk).split(b"\n")
                for line in whole:
                    with suppress(ValueError, KeyError, TypeError):
                        entry = json.loads(line)
                        yield entry["kind"], {**entry["data"], "time": entry["time"]}
            if last:
                return
