"""Panels of plugins as data for the page. Whatever a plugin put in, only texts and numbers come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from benchflow_core.contracts import OwnedPanel, PanelBars, PanelBlock, PanelFacts, PanelTable, PanelText

__all__ = ["panels_document"]

_ROWS = 500
_TEXT = 20_000


def panels_document(make: Callable[[], Sequence[OwnedPanel]]) -> dict[str, Any]:
    return {
        "panels": [
            {"owner": one.owner, "title": _cell(one.panel.title), "blocks": [_block(b) for b in one.panel.blocks]}
            for one in make()
        ]
    }


def _block(block: PanelBlock) -> dict[str, Any]:
    if isinstance(block, PanelText):
        return {"is": "text", "text": str(block.text)[:_TEXT], "fixed": bool(block.fixed)}
    if isinstance(block, PanelFacts):
        return {"is": "facts", "facts": [[_cell(name), _cell(value)] for name, value in block.facts.items()][:_ROWS]}
    if isinstance(block, PanelTable):
        rows = [[_cell(cell) for cell in row][: len(block.columns)] for row in list(block.rows)[:_ROWS]]
        return {"is": "table", "columns": [_cell(c) for c in block.columns], "rows": rows}
    if isinstance(block, PanelBars):
        bars = [[_cell(name), value] for name, value in block.values.items() if _number(value)]
        return {"is": "bars", "bars": bars[:_ROWS], "unit": _cell(block.unit)}
    return {"is": "text", "text": f"A block of an unknown kind: {type(block).__name__}", "fixed": False}


def _cell(value: Any) -> str | float | None:
    return value if value is None or _number(value) else str(value)[:2000]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
