"""The isolation policy `fresh`, and where it is possible."""

from __future__ import annotations

from typing import Final

from benchflow_core.contracts import Capability, FeatureSpec, IsolationPolicy, Task, VerifierSettings
from benchflow_core.hookspecs import hookimpl

__all__ = ["FRESH", "benchflow_feature"]


def _why_not(task: Task, settings: VerifierSettings, capabilities: frozenset[str]) -> str | None:
    if settings.service != "main":
        return f"the verifier works in service '{settings.service}', and only main is captured"
    if task.environment.compose is not None:
        if Capability.SNAPSHOT_COMPOSE not in capabilities:
            return "the task has several services, and a snapshot holds only one"
        if task.environment.setup:
            return "the task's setup commands run beside its services, and what they change would count as the agent's"
    return None


FRESH: Final = IsolationPolicy(
    "benchflow_feature_isolation.readings:verify_fresh",
    needs=frozenset({Capability.SNAPSHOT, Capability.CHANGES}),
    why_not=_why_not,
)


@hookimpl
def benchflow_feature() -> FeatureSpec:
    return FeatureSpec(
        summary="verify in a box of its own on the agent's files: as left, and clean of what could steer the tests",
        isolation={"fresh": f"{__name__}:FRESH"},
    )
