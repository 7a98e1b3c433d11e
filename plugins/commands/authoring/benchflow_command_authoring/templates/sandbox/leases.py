"""Boxes on disk: a folder each, with a note of who made it, so that nothing is lost when its owner crashes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchflow_core.contracts import Lease

from {{module}}.trees import end_all


def root() -> Path:
    return Path(tempfile.gettempdir()) / f"{{dist}}-{os.getuid()}"


def create(identity: str, labels: Mapping[str, str], expires_after: float) -> Path:
    folder = root() / identity
    (folder / "work").mkdir(parents=True, mode=0o700)
    note = {
        "labels": dict(labels),
        "created_at": time.time(),
        "expires_at": time.time() + expires_after,
        "owner": [os.getpid(), _started(os.getpid())],
    }
    (folder / "lease.json").write_text(json.dumps(note))
    return folder


def all_leases() -> Iterator[Lease]:
    for file in sorted(root().glob("*/lease.json")):
        with contextlib.suppress(OSError, ValueError):
            note = json.loads(file.read_text())
            pid, started = note["owner"]
            alive = started is not None and _started(pid) == started
            yield Lease(file.parent.name, "box", note["labels"], note["created_at"], note["expires_at"], alive)


def remove(identity: str) -> None:
    """Ends every process of the box, then removes its folder. Safe to call again."""
    end_all("BENCHFLOW_BOX", identity)
    folder = root() / identity
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks: tells it from a later one with the same number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None
