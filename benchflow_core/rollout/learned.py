"""What a rollout is given of a learner store."""

from __future__ import annotations

from pathlib import Path

from benchflow_core.quick import dataclass

__all__ = ["Learned"]


@dataclass(frozen=True)
class Learned:
    """One generation of a learner store."""

    folder: Path
    generation: int
    digest: str
