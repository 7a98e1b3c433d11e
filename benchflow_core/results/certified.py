"""Tasks whose reference solution was seen to pass here: for them a verifier that fails is the agent's zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchflow_core.results.files import read_json, write_json

__all__ = ["certify", "is_certified"]


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
