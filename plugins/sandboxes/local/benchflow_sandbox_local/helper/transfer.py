"""Files in and out of a box: one side walks and sends descriptors, the other writes. Either side may be the box.

A walk goes through directory descriptors and never follows a link it finds; the writer accepts single path components
only, so neither side can be led out of its directory by what the other sends.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, NamedTuple

Entries = list[list[Any]]
"""Rows of kind, name, mode, size, link target, owner. `dir` goes down, `up` comes back."""
Skip = Callable[[str, bool], bool]
"""Relative path and whether it is a directory: leave it out?"""


class Refused(Exception):
    """What was to be transferred is not what may be: a device, too much, too deep."""


class Limits(NamedTuple):
    max_bytes: int = 1 << 62
    max_entries: int = 1 << 62
    max_depth: int = 200


class Budget:
    """Counts what is left of the limits. Both sides count, since neither has to believe the other."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.bytes = limits.max_bytes
        self.entries = limits.max_entries

    def entry(self, depth: int) -> None:
        self.entries -= 1
        if self.entries < 0:
            raise Refused(f"more than {self.limits.max_entries} entries")
        if depth > self.limits.max_depth:
            raise Refused(f"deeper than {self.limits.max_depth} directories")

    def size(self, count: int) -> None:
        self.bytes -= count
        if self.bytes < 0:
            raise Refused(f"more than {self.limits.max_bytes} bytes")


def describe(error: BaseException) -> dict[str, Any]:
    if isinstance(error, OSError):
        return {"errno": error.errno or errno.EIO, "text": error.strerror or str(error), "path": error.filename}
    return {"refused": str(error)}


def revive(data: dict[str, Any]) -> Exception:
    if "refused" in data:
        return Refused(str(data["refused"]))
    path = data.get("path")
    return OSError(int(data["errno"]), str(data["text"]), *([str(path)] if path else []))
