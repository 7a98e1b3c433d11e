"""Trial is the older word for rollout."""

from __future__ import annotations

from benchflow_core.drive.scenes import Role, Scene, Turn
from benchflow_core.rollout import Rollout, RolloutConfig, RolloutResult

__all__ = ["Role", "RunResult", "Scene", "Trial", "TrialConfig", "Turn"]

Trial = Rollout
TrialConfig = RolloutConfig
RunResult = RolloutResult
