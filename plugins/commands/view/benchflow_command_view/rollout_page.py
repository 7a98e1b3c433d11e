"""The document of a rollout or a session: everything but its steps, which come page by page."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from benchflow_command_view.catalogue import ATTEMPTS, safe
from benchflow_command_view.files import listing
from benchflow_command_view.steps.source import StepSource
from benchflow_core.contracts import ResultsReader

__all__ = ["rollout_document", "session_document"]

_OUTPUT = 200_000
_OUTPUTS = ("test-stdout.txt", "test-stderr.txt", "reward.txt", "reward.json", "ctrf.json")


def rollout_document(reader: ResultsReader, jid: str, rid: str, folder: Path, source: StepSource) -> dict[str, Any]:
    record = reader.rollout(folder)
    result = dict(record.result)
    job = folder.parent.parent if folder.parent.name == ATTEMPTS else folder.parent
    return {
        "id": rid,
        "job": jid,
        "name": folder.name,
        "path": str(folder),
        "job_name": job.name,
        "task": result.get("task_name") or re.sub(r"__[0-9a-f]{8,}(\.\d+)?$", "", folder.name),
        "result": result,
        "config": dict(record.config),
        "outcome": _outcome(result),
        "running": not result,
        "verifier": _verifier(folder, result.get("step_results")),
        "attempts": _attempts(job, folder),
        "traffic": source.traffic.calls,
        **source.outline(None if result else time.time()),
        **listing(folder),
    }


def session_document(rid: str, file: Path, source: StepSource) -> dict[str, Any]:
    return {
        "id": rid,
        "job": "session",
        "name": file.name,
        "path": str(file),
        "job_name": None,
        "result": {},
        "config": {},
        "outcome": None,
        "running": False,
        "verifier": [],
        "attempts": [],
        "traffic": [],
        "session": True,
        **source.outline(),
        "files": [],
        "more": False,
    }


def _outcome(result: dict[str, Any]) -> str:
    """As `result.json` says it: only a reward of exactly 1 passes."""
    if not result:
        return "running"
    rewards = result.get("rewards")
    reward = rewards.get("reward") if isinstance(rewards, dict) else None
    if reward is not None:
        return "passed" if reward == 1 else "failed"
    return "verifier_errored" if result.get("verifier_error") else "errored"


def _verifier(folder: Path, results: Any) -> list[dict[str, Any]]:
    """What the verifier printed and left, also of the steps of a multi-step task, in their order."""
    found = []
    order = [str(one.get("name")) for one in results or () if isinstance(one, dict)]
    steps = sorted((folder / "steps").glob("*/verifier"))
    steps.sort(key=lambda path: order.index(path.parent.name) if path.parent.name in order else len(order))
    for parent in [folder / "verifier", *steps]:
        for name in _OUTPUTS:
            path = parent / name
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as stream:
                data = stream.read(_OUTPUT)
                size = path.stat().st_size
            text = data.decode("utf-8", "replace")
            found.append({"name": path.relative_to(folder).as_posix(), "text": text, "cut": max(0, size - _OUTPUT)})
    return found


def _attempts(job: Path, folder: Path) -> list[dict[str, str]]:
    """Earlier attempts of the same rollout, and the one that counts."""
    folders = job / ATTEMPTS
    base = folder.name.rpartition(".")[0] if folder.parent.name == ATTEMPTS else folder.name
    start = f"{base}."
    earlier = sorted(path.name for path in folders.iterdir() if path.name.startswith(start)) if folders.is_dir() else []
    return [{"id": safe(name), "name": name} for name in [*earlier, base]] if earlier else []
