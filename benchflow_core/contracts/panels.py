"""Panels: what a plugin adds to the page of a job or a rollout. Data only; whoever shows it decides how.

Every text in a panel is shown as text: there is no markup, no script and no address that is followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from benchflow_core.quick import dataclass

__all__ = ["Panel", "PanelBars", "PanelBlock", "PanelFacts", "PanelTable", "PanelText"]


@dataclass(frozen=True, slots=True)
class PanelText:
    """A paragraph, or a listing."""

    text: str
    fixed: bool = False
    """In a fixed-width font, line by line."""


@dataclass(frozen=True, slots=True)
class PanelFacts:
    """Names and values, one below the other."""

    facts: Mapping[str, str | float | None]


@dataclass(frozen=True, slots=True)
class PanelTable:
    """Rows of cells, as many in each as there are columns. Numbers are set to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]


@dataclass(frozen=True, slots=True)
class PanelBars:
    """Numbers to compare at a glance, none below zero."""

    values: Mapping[str, float]
    unit: str = ""


PanelBlock = PanelText | PanelFacts | PanelTable | PanelBars


@dataclass(frozen=True, slots=True)
class Panel:
    """One box on a page.

    Example::

        Panel("Tokens by role", [PanelBars({"coder": 1200, "reviewer": 300}, unit="tokens")])
    """

    title: str
    blocks: Sequence[PanelBlock] = field(default_factory=tuple)
