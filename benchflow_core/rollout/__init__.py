"""One rollout: the phase machine, its plan, its sessions and its outcome. Reading results needs nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchflow_core.lazy import names_of

if TYPE_CHECKING:
    from benchflow_core.rollout.host import Host
    from benchflow_core.rollout.result import RolloutResult
    from benchflow_core.rollout.rollout import Rollout
    from benchflow_core.settings.models import RolloutConfig

__all__ = ["Host", "Rollout", "RolloutConfig", "RolloutResult"]

__getattr__ = names_of(
    __name__,
    {
        "host": "Host",
        "rollout": "Rollout",
        "benchflow_core.settings.models": "RolloutConfig",
        "result": "RolloutResult",
    },
)
