"""Which plugin serves: the one that is named, or the best of those that answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchflow_core.contracts.drivers import DriverSpec
from benchflow_core.errors import ConfigurationError, PluginError
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.plugins.guard import guarded_spec
from benchflow_core.plugins.remedies import install_command

__all__ = [
    "choose_sandbox",
    "default_driver",
    "find_agent",
    "find_verifier",
    "sandbox_capabilities",
    "take_sandbox",
    "user_driver",
]

_PLUGIN_NAME = re.compile(r"[\w-]+(::[\w-]+)?(/[\w-]+)?")


def find_agent(name: str, plugins: Registry) -> Loaded:
    """Return the installed agent of that name, or what an agent opens that is named by what it runs.

    Nothing else is ever run as a command.
    """
    try:
        return plugins.get("agent", name)
    except PluginError:
        if _PLUGIN_NAME.fullmatch(name):
            raise
    for agent in plugins.all("agent"):
        spec = agent.spec.opens(name) if agent.spec.opens else None
        if spec is not None:
            opened = replace(agent, name=name, spec=spec, aliases=())
            return replace(opened, spec=guarded_spec("agent", opened.who, spec))
    remedy = f"For a command line or a file: {install_command('benchflow-agent-command')}"
    raise PluginError(f"No installed agent is called {name!r}, or opens it.", remedy=remedy)


def sandbox_capabilities(sandbox: Loaded) -> frozenset[str]:
    declared = sandbox.spec.capabilities
    return frozenset(declared() if callable(declared) else declared)


def take_sandbox(
    named: str | None, plugins: Registry, env: Mapping[str, str], *, elsewhere: bool = False
) -> tuple[Loaded, list[str]]:
    """The sandbox that is named, or the best-ranked that answers here, and what was passed over, as notices.

    `elsewhere`: the boxes are on other machines, so that one that does not answer here may do so there.
    """
    if named:
        sandbox = plugins.get("sandbox", named)
        if not elsewhere:
            refuse_unavailable(sandbox, env)
        return sandbox, []
    sandbox, refusals = choose_sandbox(plugins)
    why = f"no sandbox was named: '{sandbox.name}' is taken, passed over {'; '.join(refusals)}"
    return sandbox, [why] if refusals else []


def refuse_unavailable(sandbox: Loaded, env: Mapping[str, str]) -> None:
    """Refuse a sandbox that does not answer here. One whose credentials are all in `env` is asked later."""
    required = sandbox.spec.requires
    missing = [name for name in required if not env.get(name)]
    if (missing or not required) and not (found := sandbox.spec.available()).ok:
        reason = found.reason.rstrip(".") or f"{missing[0]} is not set"
        raise ConfigurationError(f"sandbox '{sandbox.name}' cannot be used: {reason}.", remedy=found.remedy or None)


def choose_sandbox(plugins: Registry) -> tuple[Loaded, list[str]]:
    """The best-ranked sandbox that answers here, and those of a better rank with the reason why they do not."""
    ranked = sorted(
        (s for s in plugins.all("sandbox") if s.spec.default_rank is not None), key=lambda s: s.spec.default_rank
    )
    refusals: list[str] = []
    for sandbox in ranked:
        found = sandbox.spec.available()
        if found.ok:
            return sandbox, refusals
        refusals.append(f"{sandbox.name}: {found.reason}")
    said = "; ".join(refusals) or "there is none"
    remedy = plugins.kept_out("sandbox") or "Run: bench plugins doctor"
    raise ConfigurationError(f"no sandbox can be used here ({said}).", remedy=remedy)


def default_driver(plugins: Registry) -> Loaded:
    """Return the driver of a rollout that names none."""
    return _only_driver(plugins, lambda spec: spec.default, "a rollout which names none")


def user_driver(plugins: Registry) -> Loaded:
    """Return the driver of a rollout with a simulated user."""
    return _only_driver(plugins, lambda spec: spec.user is not None, "simulated users")


def _only_driver(plugins: Registry, wanted: Callable[[DriverSpec], bool], what: str) -> Loaded:
    found = [driver for driver in plugins.all("driver") if wanted(driver.spec)]
    if len(found) > 1:
        raise ConfigurationError(
            f"one driver that plays {what} is expected, found: {', '.join(d.name for d in found)}.",
            remedy="Run: bench plugins list --kind driver",
        )
    if not found:
        remedy = plugins.kept_out("driver") or f"Install one: {install_command('benchflow-driver-scenes')}"
        raise ConfigurationError(f"no driver is installed that plays {what}.", remedy=remedy)
    return found[0]


def find_verifier(method: str, plugins: Registry) -> Loaded:
    found = [v for v in plugins.all("verifier") if method in v.spec.methods]
    if not found:
        known = sorted(m for v in plugins.all("verifier") for m in v.spec.methods)
        more = plugins.kept_out("verifier") or f"Try: pip install benchflow-verifier-{method}"
        raise ConfigurationError(
            f"no installed verifier handles '{method}'.",
            remedy=f"These are handled: {', '.join(known) or 'none'}. {more}",
        )
    return found[0]
