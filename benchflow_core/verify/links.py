"""Where a link of the agent's leads, told from the list of changes. Nobody honest links to tests that are not there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.ground import Ground, name_of, parent_of, under

__all__ = ["in_the_way", "in_the_way_itself", "leads_to_tests", "links_of", "other_names"]

_STEPS: Final = 200
_SELF = re.compile(r"^/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/(root|cwd)(?=/|$)")
_SOLUTION: Final = "/solution"
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/dev/shm")
_DEVICES: Final = {"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0"}
_OPENED = re.compile(r"^/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/fd(?:$|/(?![12]$))")
"""What the reader itself has open; its two outputs are where honest programs send their logs."""


def links_of(changes: Sequence[Change]) -> dict[str, str]:
    """Every link that the agent made, with its target."""
    return {c.path: c.target for c in changes if c.type == "link" and c.target and c.kind != "deleted"}


def leads_to_tests(path: str, links: Mapping[str, str], ground: Ground) -> bool:
    """Would it show the verifier's own files, or the solution, under a name of the agent's?"""
    ends = {_resolve(path, links, ground, through_image=way) for way in (False, True)}
    return any(
        _OPENED.match(end) or any(under(end, folder) for folder in (ground.tests, ground.logs, _SOLUTION))
        for end in ends
    )


def in_the_way(path: str, links: Mapping[str, str], ground: Ground) -> bool:
    """A link to a file where the tests lay one of their own, which they would write through it."""
    author, end = ground.author, _resolve(path, links, ground)
    if author.instruction_names(name_of(path)) or under(end, "/dev") or under(end, "/proc"):
        return False
    if any(under(path, folder) for folder in _TEMPORARY) and author.tests_use(path):
        return True
    return any(under(written, path) for written in author.written)


def in_the_way_itself(change: Change, ground: Ground) -> bool:
    """A file where the tests make one of their own: if they fail to, they would take this for theirs."""
    path, author = change.path, ground.author
    if change.kind != "added" or change.type != "file" or path not in author.written:
        return False
    return any(under(path, folder) for folder in _TEMPORARY) and not author.instruction_names(name_of(path))


def other_names(links: Mapping[str, str], ground: Ground) -> dict[str, list[str]]:
    """Place to the links that lead there: a folder is also known by the name of a link to it.

    Only links where the system and its tools look for something; those among the agent's own files are left out.
    """
    names: dict[str, list[str]] = {}
    for link in links:
        if not ground.in_work(link) or under(ground.home, ground.workdir):
            names.setdefault(_resolve(link, links, ground), []).append(link)
    return names


def _resolve(path: str, links: Mapping[str, str], ground: Ground, *, through_image: bool = False) -> str:
    """By the agent's links alone; those of the image lead to places of the image, and `..` from there to anywhere."""
    rest, here = [part for part in path.split("/") if part], "/"
    for _ in range(_STEPS):
        if not rest:
            break
        part = rest.pop(0)
        if part == ".":
            continue
        if part == "..":
            here = "/" if through_image and not ground.in_work(here) else parent_of(here)
            continue
        here = f"{here.rstrip('/')}/{part}"
        if found := _SELF.match(here):
            here = "/" if found[1] == "root" else ground.tests  # where its reader stands, which may be there
        elif target := links.get(here) or _DEVICES.get(here):
            rest = [piece for piece in target.split("/") if piece] + rest
            here = "/" if target.startswith("/") else parent_of(here)
    return here
