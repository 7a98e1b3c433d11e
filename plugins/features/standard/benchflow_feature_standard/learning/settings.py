"""Settings of the feature `learning`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from benchflow_core.contracts import Internal, OfOneRollout, Settings

__all__ = ["LearningSettings"]


class LearningSettings(Settings):
    """Whether the rollouts of a job learn from each other."""

    job_mode: Literal["parallel-independent", "sequential-shared"] = "parallel-independent"
    """`sequential-shared`: one rollout after the other, over one store of memory and skills that they learn from."""
    learner: Annotated[Mapping[str, Any] | None, Internal(), OfOneRollout()] = None
    """What a rollout of such a job is given: the folder, number and digest of a generation."""
