"""What a config may ask for and nothing here can do yet: refused at plan time, never left out in silence."""

from __future__ import annotations

from benchflow_core.errors import CapabilityMissing
from benchflow_core.rollout.config import RolloutConfig

__all__ = ["refuse_unready"]


def refuse_unready(config: RolloutConfig) -> None:
    if config.services:
        raise CapabilityMissing(f"services are asked for ({', '.join(config.services)}), and nothing here starts them.")
    if config.environment_manifest:
        raise CapabilityMissing(
            f"environment manifest '{config.environment_manifest}' is asked for, and nothing here provisions it."
        )
