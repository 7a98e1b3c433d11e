"""Older words: a trial is a rollout, `ACPError` an agent's breach of its protocol."""

from __future__ import annotations

from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.errors import AgentProtocolError
from benchflow_core.rollout import Rollout, RolloutConfig, RolloutResult

__all__ = ["ACPError", "Role", "RunResult", "Scene", "Trial", "TrialConfig", "Turn"]

Trial = Rollout
TrialConfig = RolloutConfig
RunResult = RolloutResult
ACPError = AgentProtocolError
