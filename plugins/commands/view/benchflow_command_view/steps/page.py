"""Steps as a page shows them: long texts cut, files' changes as lines, everything a plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchflow_command_view.steps.blocks import as_text, printed
from benchflow_command_view.steps.diffs import line_diff

__all__ = ["PAGE", "shown"]

PAGE = 100
"""Steps in one document."""
_CUT = 4000
_WHOLE = 2_000_000


def shown(step: Mapping[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """`whole`: as much as a browser can be asked to hold. `cut` says that there is more."""
    cut = _Cut(_WHOLE if whole else _CUT)
    found = {key: value for key, value in step.items() if key not in ("blocks", "text", "input", "output", "data")}
    for key in ("title", "status", "kind", "call"):
        if isinstance(found.get(key), str):
            found[key] = found[key][:500]
    wrote = printed(step.get("output"))
    uncounted = _Cut(cut.most)
    for key in ("text", "input", "output", "data"):
        if step.get(key) not in (None, "", {}, []):
            found[key] = (uncounted if key == "output" and wrote else cut)(as_text(step[key]))
    found.pop("terminal", None)
    if blocks := _blocks(step):
        found["blocks"] = [_block(block, cut) for block in blocks[:200]]
    if wrote is not None:
        said = "\n".join(block["text"] for block in blocks if block["is"] == "text")
        found["printed"] = cut("\n".join(part for part in wrote[0] if part not in said))
        if wrote[1] is not None:
            found["exit"] = wrote[1]
    if cut.lost:
        found["cut"] = cut.lost
    return found


def _blocks(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """With what a terminal printed in its place."""
    blocks = list(step.get("blocks") or ())
    places = [i for i, block in enumerate(blocks) if block["is"] == "terminal"]
    if step.get("terminal"):
        at = places[0] if places else len(blocks)
        blocks[at : at + 1] = [{"is": "text", "text": step["terminal"]}]
    return [block for block in blocks if block["is"] != "terminal"]


class _Cut:
    """The beginning of long texts, and how much of them is missing in all."""

    def __init__(self, most: int) -> None:
        self.most, self.lost = most, 0

    def __call__(self, text: str) -> str:
        if len(text) <= self.most:
            return text
        self.lost += len(text) - self.most
        return text[: self.most]


def _block(block: Mapping[str, Any], cut: _Cut) -> dict[str, Any]:
    if block["is"] == "diff":
        most = 4000 if cut.most > _CUT else 120
        lines, left_out = line_diff(block["old"], block["new"], most)
        cut.lost += left_out
        return {"is": "diff", "path": block["path"][:500], "lines": [[op, cut(text)] for op, text in lines]}
    if block["is"] == "text":
        return {"is": "text", "text": cut(block["text"])}
    return dict(block)
