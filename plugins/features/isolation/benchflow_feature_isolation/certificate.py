"""What the reference solution changes: every agent may do that, too."""

from __future__ import annotations

from collections.abc import Sequence

from benchflow_core.contracts import ReferenceRun
from benchflow_feature_isolation.clean import Undo, judge
from benchflow_feature_isolation.origin import Places
from benchflow_feature_isolation.shadowing import ImageNames

__all__ = ["split_covered"]


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
