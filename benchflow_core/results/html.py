"""Results in a notebook: small tables of escaped text, with no script and no style but a few plain attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["card", "table", "text"]

_LONGEST = 500


def text(value: Any) -> str:
    """Escaped; what would hide or reorder the text around it is shown as what it is."""
    if value is None:
        return ""
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    cut = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} …"
    plain = "".join(c if c.isprintable() else " " if c.isspace() else f"\\u{ord(c):04x}" for c in cut)
    return escape(plain)


def card(title: Any, facts: Iterable[tuple[str, Any]], *more: str) -> str:
    """A heading, names with values (those without one are left out), and further tables."""
    rows = "".join(
        f'<tr><th style="text-align:left">{text(name)}</th><td style="text-align:left">{text(value)}</td></tr>'
        for name, value in facts
        if value is not None and value != ""
    )
    return f"<div><strong>{text(title)}</strong><table>{rows}</table>{''.join(more)}</div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f'<th style="text-align:left">{text(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{text(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
