"""Where a link of the agent's leads, told from the list of changes. Nobody honest links to tests that are not there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.ground import Ground, parent_of, under

__all__ = ["leads_to_tests", "links_of", "other_names"]

_STEPS: Final = 200
_SELF = re.compile(r"^/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/(root|cwd)(?=/|$)")
_SOLUTION: Final = "/solution"
_DEVICES: Final = {"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0"}
_OPENED = re.compile(r"^/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/fd(?:$|/(?![12]$))")
"""What the reader itself has open; its two outputs are where honest programs send their logs."""


def links_of(changes: Sequence[Change]) -> dict[str, str]:
    """Every link that the agent made, with its target."""
    return {c.path: c.target for c in changes if c.type == "link" and c.target and c.kind != "deleted"}


def leads_to_tests(path: str, links: Mapping[str, str], ground: Ground) -> bool:
    """Would it show the verifier's own files, or the solution, under a name of the agent's?"""
    end = _resolve(path, links, ground)
    return _OPENED.match(end) is not None or any(
        under(end, folder) for folder in (ground.tests, ground.logs, _SOLUTION)
    )


def other_names(links: Mapping[str, str], ground: Ground) -> dict[str, list[str]]:
    """Place to the links that lead there: a folder is also known by the name of a link to it.

    Only links where the system and its tools look for something; those among the agent's own files are left out.
    """
    names: dict[str, list[str]] = {}
    for link in links:
        if not ground.in_work(link) or under(ground.home, ground.workdir):
            names.setdefault(_resolve(link, links, ground), []).append(link)
    return names


def _resolve(path: str, links: Mapping[str, str], ground: Ground) -> str:
    """By the agent's links alone; those of the image lead to places of the image."""
    rest, here = [part for part in path.split("/") if part], "/"
    for _ in range(_STEPS):
        if not rest:
            break
        part = rest.pop(0)
        if part == ".":
            continue
        here = parent_of(here) if part == ".." else f"{here.rstrip('/')}/{part}"
        if found := _SELF.match(here):
            here = "/" if found[1] == "root" else ground.workdir
        elif target := links.get(here) or _DEVICES.get(here):
            rest = [piece for piece in target.split("/") if piece] + rest
            here = "/" if target.startswith("/") else parent_of(here)
    return here
