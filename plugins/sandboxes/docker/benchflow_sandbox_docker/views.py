"""Access views: what a program of a box may see and change, as its first process is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchflow_core.contracts.sandboxes import AccessView
from benchflow_core.errors import ConfigurationError

__all__ = ["seal", "shown"]


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


def shown(view: AccessView | None, *, apart: bool) -> dict[str, Any] | None:
    """`apart`: away from other programs of the box, which see more."""
    if view is None or not (view.read_only or view.hidden):
        return None
    found = {"read_only": list(view.read_only), "hidden": list(view.hidden), "writable": list(view.writable)}
    for path in (path for paths in found.values() for path in paths):
        if not path.startswith("/") or "\0" in path or ".." in path.split("/"):
            raise ConfigurationError(f"{path!r} in an access view is not an absolute path without '..'.")
    return {**found, "apart": apart}
