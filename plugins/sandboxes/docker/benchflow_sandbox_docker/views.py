"""Access views of a service whose file system is read-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchflow_core.contracts.sandboxes import AccessView

__all__ = ["seal"]


def seal(view: AccessView | None, writable: Sequence[str]) -> AccessView:
    """A read-only file system, but for these; what a view forbids beyond that stays forbidden."""
    if view is None:
        return AccessView(read_only=("/",), writable=tuple(writable))
    if "/" in view.read_only:
        return replace(view, writable=tuple(p for p in view.writable if any(_below(p, top) for top in writable)))
    kept = [path for path in writable if not any(_below(path, top) for top in view.read_only)]
    return replace(view, read_only=("/", *view.read_only), writable=(*kept, *view.writable))


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")
