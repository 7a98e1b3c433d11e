"""What settles a difference, and what it comes from: the reference solution's own changes, and halving."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from benchflow_core.contracts import ReferenceRun
from benchflow_feature_isolation.clean import Undo, judge
from benchflow_feature_isolation.origin import Places
from benchflow_feature_isolation.shadowing import ImageNames

__all__ = ["find_culprits", "split_covered"]


def split_covered(
    undos: Sequence[Undo], reference: ReferenceRun, places: Places, names: ImageNames
) -> tuple[list[Undo], list[Undo]]:
    """Return what the reference solution's own changes cover, and what they do not.

    Covered are the same files, the same packages and the same rows of the table, as far as a row says so. A file that
    steers nothing in the solution's hands covers none: an answer that is a link to the tests is not the answer.
    """
    units = {undo.unit for undo in judge(reference.changes, places, names).undos}
    covered = [undo for undo in undos if undo.unit in units]
    return covered, [undo for undo in undos if undo not in covered]


async def find_culprits(
    undos: Sequence[Undo], differs: Callable[[Sequence[Undo]], Awaitable[bool]], most: int = 8
) -> list[Undo]:
    """Return a smallest set that makes the difference by itself; where the runs are used up, what is left to search.

    `differs` tells whether undoing these changes alone gives another reward than undoing none; for all of them it is
    known to. Changes of one unit stay together.
    """
    units: dict[str, list[Undo]] = {}
    for undo in undos:
        units.setdefault(undo.unit, []).append(undo)
    found, rest = list[str](), list(units)
    while rest:
        low, high = -1 if found else 0, len(rest)  # the first `high` of the rest make it, the first `low` do not
        while high - low > 1:
            if most == 0:
                return [undo for name in (*found, *rest[:high]) for undo in units[name]]
            most, middle = most - 1, 0 if low < 0 else (low + high) // 2
            if await differs([undo for name in (*found, *rest[:middle]) for undo in units[name]]):
                high = middle
            else:
                low = middle
        found, rest = [*found, *rest[high - 1 : high]], rest[: max(high - 1, 0)]
    return [undo for name in found for undo in units[name]]
