"""Settings of the feature `skills`."""

from __future__ import annotations

from typing import Annotated, Literal

from benchflow_core.contracts import Axis, Option, Settings, Treatment

__all__ = ["SkillSettings"]


class SkillSettings(Settings):
    """Which skills agents get."""

    skill_mode: Annotated[
        Literal["no-skill", "with-skill", "self-gen"] | None, Option(metavar="MODE"), Axis("skill_modes"), Treatment()
    ] = None
    """no-skill, with-skill or self-gen. Several: an arm each."""
    skills_dir: Annotated[str | None, Option(path="any"), Treatment()] = None
    """Skills for the agent."""
