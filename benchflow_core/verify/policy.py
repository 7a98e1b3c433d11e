"""Which isolation is possible, and which one is taken."""

from __future__ import annotations

from typing import Final

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.tasks import Task, VerifierSettings
from benchflow_core.errors import CapabilityMissing

__all__ = ["choose", "policies"]

_FRESH_NEEDS: Final = (Capability.SNAPSHOT, Capability.CHANGES)


def policies(task: Task, settings: VerifierSettings, capabilities: frozenset[str]) -> list[str]:
    """The isolation policies that task and sandbox allow, strongest first; never empty.

    A policy that the task demands is the only one.
    """
    if settings.isolation is not None:
        return [settings.isolation]
    if settings.environment is not None:
        return ["separate"]
    return ["fresh", "shared"] if _why_not_fresh(task, settings, capabilities) is None else ["shared"]


def choose(
    task: Task, settings: VerifierSettings, capabilities: frozenset[str], wish: str | None
) -> tuple[str, list[str]]:
    """The policy, and what is to be said aloud about it."""
    allowed = policies(task, settings, capabilities)
    policy = wish or allowed[0]
    why_not = _why_not_fresh(task, settings, capabilities)
    if policy not in allowed:
        reason = f" ({why_not})" if policy == "fresh" and why_not else ""
        raise CapabilityMissing(
            f"verifier isolation '{policy}' cannot be had for task '{task.name}'{reason}.",
            remedy=f"Possible: {', '.join(allowed)}.",
        )
    if policy == "fresh" and why_not:
        raise CapabilityMissing(f"task '{task.name}' demands verifier isolation 'fresh', but {why_not}.")
    if policy != "shared":
        return policy, []
    cause = "the task demands it" if settings.isolation else why_not or "it was asked for"
    return policy, [f"verifier isolation is 'shared' ({cause}): what the agent left in its box can reach the verifier"]


def _why_not_fresh(task: Task, settings: VerifierSettings, capabilities: frozenset[str]) -> str | None:
    missing = [str(c) for c in _FRESH_NEEDS if c not in capabilities]
    if missing:
        return f"the sandbox does not have {' and '.join(missing)}"
    if settings.service != "main":
        return f"the verifier works in service '{settings.service}', and only main is captured"
    if task.environment.compose is not None:
        if Capability.SNAPSHOT_COMPOSE not in capabilities:
            return "the task has several services, and a snapshot holds only one"
        if task.environment.setup:
            return "the task's setup commands run beside its services, and what they change would count as the agent's"
    return None
