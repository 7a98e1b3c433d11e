"""Does a distribution accept this core? Asked of its metadata, before its code is imported."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from benchflow_core import __version__
from benchflow_core.plugins.distributions import Distribution, canonical
from benchflow_core.plugins.policy import CORE

__all__ = ["accepts", "incompatible"]

_NAMES_CORE: Final = re.compile(r"benchflow[-_.]+core(?![-_.\w])", re.IGNORECASE)
_CLAUSE: Final = re.compile(r"(>=|<)\s*(\d+(?:\.\d+)*)(?:\.dev(\d+))?")
_VERSION: Final = re.compile(r"(\d+(?:\.\d+)*)(?:\.dev(\d+))?")


def incompatible(distribution: Distribution) -> str | None:
    """The requirement on the core that is not met, as written."""
    for requirement in distribution.header("Requires-Dist"):
        if _NAMES_CORE.match(requirement) and not accepts(requirement, __version__):
            return requirement
    return None


@cache
def accepts(requirement: str, version: str) -> bool:
    """Is the requirement, which names the core, met by this version of it?"""
    quick = _quick(_NAMES_CORE.sub("", requirement, count=1), version)
    return _slow(requirement, version) if quick is None else quick


def _quick(specifiers: str, version: str) -> bool | None:
    """The answer for `>=0.8.0.dev0,<0.9`, which nearly everybody writes; `None` for anything richer.

    It is here because importing packaging costs a third of a whole `bench plugins list`.
    """
    clauses = [_CLAUSE.fullmatch(clause.strip()) for clause in specifiers.split(",")]
    ours = _VERSION.fullmatch(version)
    if ours is None or None in clauses:
        return None
    have = _key(*ours.groups())
    for clause in clauses:
        assert clause is not None
        sign, release, dev = clause.groups()
        bound = _key(release, dev)
        if sign == ">=" and have < bound:
            return False
        # A pre-release of the bound itself is not below it.
        if sign == "<" and (have >= bound or (dev is None and have[0] == bound[0])):
            return False
    return True


def _key(release: str, dev: str | None) -> tuple[tuple[int, ...], float]:
    numbers = [int(part) for part in release.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), float("inf") if dev is None else int(dev)


def _slow(requirement: str, version: str) -> bool:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return False
    if canonical(parsed.name) != CORE or (parsed.marker and not parsed.marker.evaluate({"extra": ""})):
        return True
    return parsed.specifier.contains(version, prereleases=True)
