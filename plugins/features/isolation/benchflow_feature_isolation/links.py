"""Where a link of the agent's leads, told from the list of changes alone: no box is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from benchflow_core.contracts import Change
from benchflow_feature_isolation.origin import Places, parent_of, under

__all__ = ["leads_astray", "links_of"]

_STEPS: Final = 200
_SELF = re.compile(r"^/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/(root|cwd)(?=/|$)")
_ASTRAY: Final = ("/proc", "/dev", "/solution")


def links_of(changes: Sequence[Change]) -> dict[str, str]:
    """Return every link that the agent made, with its target."""
    return {c.path: c.target for c in changes if c.type == "link" and c.target and c.kind != "deleted"}


def leads_astray(path: str, links: Mapping[str, str], places: Places) -> bool:
    """Tell whether a link shows the tests, the solution, the log folder, a device or its reader's own files."""
    ends = {_resolve(path, links, places, through_image=way) for way in (False, True)}
    return any(under(end, folder) for end in ends for folder in (places.tests, places.logs, *_ASTRAY))


def _resolve(path: str, links: Mapping[str, str], places: Places, *, through_image: bool) -> str:
    """Follow the agent's links alone; the image's lead to places of the image, and `..` from there to anywhere."""
    rest, here = [part for part in path.split("/") if part], "/"
    for _ in range(_STEPS):
        if not rest:
            break
        part = rest.pop(0)
        if part == ".":
            continue
        if part == "..":
            here = "/" if through_image and not places.in_work(here) else parent_of(here)
            continue
        here = f"{here.rstrip('/')}/{part}"
        if found := _SELF.match(here):
            here = "/" if found[1] == "root" else places.tests  # the reader's own folder, which may be the tests'
        elif target := links.get(here):
            rest = [piece for piece in target.split("/") if piece] + rest
            here = "/" if target.startswith("/") else parent_of(here)
    return here
