"""What an agent did to the files that a reward depends on, as text for people."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, Final

from benchflow_core.errors import InfrastructureError, VerifierError
from benchflow_feature_isolation.box import ReadingBox
from benchflow_feature_isolation.clean import Undo
from benchflow_feature_isolation.origin import read_file

__all__ = ["with_diffs"]

_FILES: Final = 8
_CHARACTERS: Final = 8000


async def with_diffs(boxes: ReadingBox, culprits: Sequence[Undo]) -> list[dict[str, Any]]:
    """Return the culprits as JSON, the first few text files with what was changed in them."""
    files = [undo for undo in culprits if undo.path.startswith("/")][:_FILES]
    before, after = await _contents(boxes, files, files), await _contents(boxes, files, ())
    rows: list[dict[str, Any]] = [undo.to_json() for undo in culprits]
    for row in rows:
        path = row["path"]
        old, new = b"" if row["change"] == "added" else before.get(path), after.get(path, b"")
        if old is None or b"\0" in old + new or old == new:
            continue
        left, right = (data.decode("utf-8", "replace").splitlines() for data in (old, new))
        row["diff"] = "\n".join(difflib.unified_diff(left, right, "image", "as left", lineterm=""))[:_CHARACTERS]
    return rows


async def _contents(boxes: ReadingBox, files: Sequence[Undo], undos: Sequence[Undo]) -> dict[str, bytes]:
    try:
        async with boxes.open(undos) as box:
            found = {undo.path: await read_file(box.sandbox, undo.path) for undo in files}
    except (InfrastructureError, VerifierError):
        return {}  # the verdict does not wait for an illustration
    return {path: data for path, data in found.items() if data is not None}
