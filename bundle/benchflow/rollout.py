"""Rollout, its config and its scenes."""

from __future__ import annotations

from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.rollout import Rollout, RolloutConfig, RolloutResult

__all__ = ["Role", "Rollout", "RolloutConfig", "RolloutResult", "Scene", "Turn"]
