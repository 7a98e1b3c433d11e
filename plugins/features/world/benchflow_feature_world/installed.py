"""Installed plugins, as the planning of a rollout and commands give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from benchflow_core.contracts import LoadedPlugin

__all__ = ["Plugins"]


class Plugins(Protocol):
    """Where plugins are asked for: a `PlanView`, or the `Core` of a command."""

    def mentioned(self, kind: str, text: str | None) -> Sequence[LoadedPlugin]: ...
