"""Tasks whose reference solution was seen to pass here: for them a verifier that fails is the agent's zero."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from benchflow_core.results.files import read_json, write_json

__all__ = ["certificate_file", "certify", "drift", "is_certified"]


def _file(cache: Path, digest: str) -> Path:
    return cache / "certified" / f"{digest.removeprefix('sha256:')}.json"


def is_certified(cache: Path, digest: str) -> bool:
    try:
        return bool(read_json(_file(cache, digest))["certified"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def certify(cache: Path, digest: str, report: dict[str, Any]) -> Path:
    """Keep the report of a live check: `certified` says that the reference passed and doing nothing did not."""
    path = _file(cache, digest)
    write_json(path, {"schema_version": "1.0", "digest": digest, **report})
    return path


def certificate_file(task: Path) -> Path:
    """Beside the task's folder: what lies in it is part of the task's digest."""
    path = task.resolve()
    return path.with_name(f"{path.name}.certificate.json")


def drift(task: Path, digest: str) -> str | None:
    """Say how a task differs from what was certified; `None` where it does not, or never was."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = read_json(certificate_file(task))
        if found["task_digest"] != digest:
            return f"the task was changed since it was certified on {found['at'][:10]}: bench tasks certify {task}"
        if not found["certified"]:
            return f"the task failed to be certified: {'; '.join(found['problems'])[:300]}"
    return None
