"""Discovery, loading, blocking and diagnosis of plugins. `registry().get("sandbox", "docker")` is the way in."""

from __future__ import annotations

from benchflow_core.plugins.policy import Policy
from benchflow_core.plugins.registry import Loaded, Registry, Report

__all__ = ["Loaded", "Policy", "Registry", "configure", "registry"]

_registry: Registry | None = None


def registry() -> Registry:
    """The registry of this process, made on first use."""
    global _registry
    if _registry is None:
        _registry = Registry()
    return _registry


def configure(policy: Policy, report: Report | None = None) -> Registry:
    """Makes the registry of this process anew, with what the command line says."""
    global _registry
    _registry = Registry(policy, report) if report else Registry(policy)
    return _registry
