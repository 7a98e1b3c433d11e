"""The environment plane: the world an agent acts in. Manifests, services, readiness, state, what a verifier is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchflow_core.lazy import names_of

if TYPE_CHECKING:
    from benchflow_core.world.plan import PlannedService, WorldPlan, plan_world
    from benchflow_core.world.world import EnvHandle, EnvState, StateSnapshot, World, WorldDirs

__all__ = ["EnvHandle", "EnvState", "PlannedService", "StateSnapshot", "World", "WorldDirs", "WorldPlan", "plan_world"]

__getattr__ = names_of(
    __name__,
    {"plan": "PlannedService WorldPlan plan_world", "world": "EnvHandle EnvState StateSnapshot World WorldDirs"},
)
