"""Which of the undone changes a reward depends on: found by halving, with a fixed number of runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from benchflow_core.verify.fresh.clean import Undo

__all__ = ["find_culprits"]

MOST_RUNS: Final = 8


async def find_culprits(
    undos: Sequence[Undo], differs: Callable[[Sequence[Undo]], Awaitable[bool]], most: int = MOST_RUNS
) -> list[Undo]:
    """Return the smallest set that was found to make the difference by itself.

    `differs` tells whether undoing these changes alone gives another reward than undoing none. Changes of one unit stay
    together. Where both halves are needed, or the runs are used up, what is left is returned as a whole.
    """
    units: dict[str, list[Undo]] = {}
    for undo in undos:
        units.setdefault(undo.unit, []).append(undo)
    names, runs = list(units), 0
    while len(names) > 1:
        half = len(names) // 2
        for part in (names[:half], names[half:]):
            if runs >= most:
                return [undo for name in names for undo in units[name]]
            runs += 1
            if await differs([undo for name in part for undo in units[name]]):
                names = part
                break
        else:
            break
    return [undo for name in names for undo in units[name]]
