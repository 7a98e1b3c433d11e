"""Access views: what a program of a box may see and change, as its supervisor is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchflow_core.contracts.sandboxes import AccessView
from benchflow_core.errors import ConfigurationError

__all__ = ["shown"]


def shown(view: AccessView | None, *, apart: bool, shut: Sequence[int] = ()) -> dict[str, Any] | None:
    """`apart`: away from other programs of the box, which see more. `shut`: ports that it cannot connect to."""
    if view is None or not (view.read_only or view.hidden):
        return None
    found = {"read_only": list(view.read_only), "hidden": list(view.hidden), "writable": list(view.writable)}
    for path in (path for paths in found.values() for path in paths):
        if not path.startswith("/") or "\0" in path or ".." in path.split("/"):
            raise ConfigurationError(f"{path!r} in an access view is not an absolute path without '..'.")
    return {**found, "apart": apart, "shut": list(shut)}
