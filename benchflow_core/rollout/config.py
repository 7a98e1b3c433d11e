"""What a rollout is asked to do: the names under which `benchflow_core.settings.models` was found here."""

from __future__ import annotations

from benchflow_core.settings.models import RolloutConfig, RolloutSettings

__all__ = ["RolloutConfig", "RolloutSettings"]
