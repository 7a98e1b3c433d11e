"""One rollout: the phase machine, its plan, its sessions and its outcome."""

from __future__ import annotations

from benchflow_core.rollout.config import RolloutConfig
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.live import live_check
from benchflow_core.rollout.result import RolloutResult
from benchflow_core.rollout.rollout import Rollout

__all__ = ["Host", "Rollout", "RolloutConfig", "RolloutResult", "live_check"]
