"""Which isolation policies there are, which of them a task and a sandbox allow, and which one is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from benchflow_core.contracts.isolation import IsolationPolicy, IsolationRequest, RunVerifier, Verdict
from benchflow_core.contracts.tasks import Task, VerifierSettings
from benchflow_core.errors import CapabilityMissing
from benchflow_core.plugins import Registry, registry
from benchflow_core.plugins.dotted import resolve
from benchflow_core.plugins.remedies import install_command
from benchflow_core.verify.boxes import verify_separate, verify_shared

__all__ = ["Verify", "choose", "policies", "policy_named"]

Verify = Callable[[IsolationRequest, RunVerifier], Awaitable[Verdict]]
_OWN: Final[Mapping[str, Verify]] = {"shared": verify_shared, "separate": verify_separate}
_PACKAGE: Final = "benchflow-feature-isolation"


def policies(
    task: Task, settings: VerifierSettings, capabilities: frozenset[str], plugins: Registry | None = None
) -> list[str]:
    """Return the isolation policies that task and sandbox allow, strongest first; never empty.

    A policy that the task demands is the only one.
    """
    if settings.isolation is not None:
        return [settings.isolation]
    if settings.environment is not None:
        return ["separate"]
    brought = _brought(plugins)
    return [*(name for name in brought if _why_not(brought[name], task, settings, capabilities) is None), "shared"]


def choose(
    task: Task,
    settings: VerifierSettings,
    capabilities: frozenset[str],
    wish: str | None,
    plugins: Registry | None = None,
) -> tuple[str, list[str]]:
    """Return the policy, and what is to be said aloud about it."""
    allowed, brought = policies(task, settings, capabilities, plugins), _brought(plugins)
    policy = wish or allowed[0]
    why_not = {name: _why_not(found, task, settings, capabilities) for name, found in brought.items()}
    if policy not in _OWN and policy not in brought:
        raise CapabilityMissing(
            f"no installed package brings the verifier isolation '{policy}'.",
            remedy=f"Installed: {', '.join([*brought, *_OWN])}. Try: {install_command(_PACKAGE)}",
        )
    if policy not in allowed:
        reason = f" ({why_not[policy]})" if why_not.get(policy) else ""
        raise CapabilityMissing(
            f"verifier isolation '{policy}' cannot be had for task '{task.name}'{reason}.",
            remedy=f"Possible: {', '.join(allowed)}.",
        )
    if why := why_not.get(policy):
        raise CapabilityMissing(f"task '{task.name}' demands verifier isolation '{policy}', but {why}.")
    if policy != "shared":
        return policy, []
    cause = "the task demands it" if settings.isolation else next(filter(None, why_not.values()), None)
    cause = cause or ("it was asked for" if brought else f"a stronger one comes with: {install_command(_PACKAGE)}")
    return policy, [f"verifier isolation is 'shared' ({cause}): what the agent left in its box can reach the verifier"]


def policy_named(name: str, plugins: Registry | None = None) -> Verify:
    """Return a policy that `choose` gave."""
    if name in _OWN:
        return _OWN[name]
    verify: Verify = resolve(_brought(plugins)[name].verify, _who(name))
    return verify


def _brought(plugins: Registry | None) -> dict[str, IsolationPolicy]:
    """Return what the installed features bring, strongest first."""
    specs: list[Any] = [feature.spec for feature in (plugins or registry()).all("feature")]
    return {name: resolve(path, _who(name)) for spec in specs for name, path in spec.isolation.items()}


def _who(name: str) -> str:
    return f"verifier isolation '{name}'"


def _why_not(
    policy: IsolationPolicy, task: Task, settings: VerifierSettings, capabilities: frozenset[str]
) -> str | None:
    missing = sorted(str(need) for need in policy.needs if need not in capabilities)
    if missing:
        return f"the sandbox does not have {' and '.join(missing)}"
    return policy.why_not(task, settings, capabilities)
