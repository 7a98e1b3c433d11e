"""`dataclass` for plugins: as in the standard library, made in a fraction of the time. See `benchflow_core.quick`."""

from __future__ import annotations

from benchflow_core.quick import dataclass

__all__ = ["dataclass"]
