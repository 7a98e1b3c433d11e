"""The isolation policy `fresh`."""

from __future__ import annotations

from benchflow_core.contracts import FeatureSpec
from benchflow_core.hookspecs import hookimpl

__all__ = ["benchflow_feature"]


@hookimpl
def benchflow_feature() -> FeatureSpec:
    return FeatureSpec(
        summary="verify in a box of its own on the agent's files: as left, and clean of what could steer the tests",
        isolation={"fresh": "benchflow_feature_isolation.policy:FRESH"},
    )
