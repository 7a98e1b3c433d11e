"""A config must stay small once it is read: not nested without end, not grown by aliases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchflow_adapter_harbor.files import problem

MAX_DEPTH = 100
_MAX_NODES = 200_000


def refuse_unbounded(data: Any, file: Path) -> None:
    """YAML aliases are shared values: each is counted as often as it would be written out."""
    if _nodes(data, {}, 0, file) > _MAX_NODES:
        raise problem(file, "is too large once its aliases are written out", code="too-large")


def _nodes(value: Any, known: dict[int, int], depth: int, file: Path) -> int:
    if not isinstance(value, dict | list | set | tuple):
        return 1
    if depth > MAX_DEPTH:
        raise problem(file, f"is nested more than {MAX_DEPTH} levels deep", code="syntax")
    if id(value) not in known:
        known[id(value)] = _MAX_NODES + 1  # stands while this is counted: a value that holds itself has no end
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_nodes(item, known, depth + 1, file) for item in inner)
    return known[id(value)]
