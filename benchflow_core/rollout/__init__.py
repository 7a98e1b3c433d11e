"""One rollout: the phase machine, its plan, its sessions and its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchflow_core.rollout.config import RolloutConfig
    from benchflow_core.rollout.host import Host
    from benchflow_core.rollout.live import live_check
    from benchflow_core.rollout.result import RolloutResult
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["Host", "Rollout", "RolloutConfig", "RolloutResult", "live_check"]

_MODULES = {
    "Host": "host",
    "Rollout": "rollout",
    "RolloutConfig": "config",
    "RolloutResult": "result",
    "live_check": "live",
}


def __getattr__(name: str) -> Any:
    """On first use: reading results needs nothing of what makes them."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
