"""Who runs, and on which model, where the user named none: as plugins rank themselves, and always said."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from benchflow_core.contracts.scenes import Role
from benchflow_core.errors import ConfigurationError
from benchflow_core.plugins import Loaded, Registry

__all__ = ["agent_for", "default_agent", "with_models", "without_model_of_others"]


def with_models(
    roles: Mapping[str, Role], agents: Mapping[str, Loaded], *, own_login: Container[str]
) -> tuple[dict[str, Role], list[str]]:
    """A role without a model has its agent's own, which is then said and recorded like one that was named.

    An agent in `own_login` takes the model that its login has.
    """
    settled, notices = dict(roles), []
    for name, role in roles.items():
        default = agents[role.agent].spec.default_model
        if role.model is None and default is not None and role.agent not in own_login:
            settled[name] = replace(role, model=default)
            notices.append(f"no model was named for '{role.agent}': {default} is taken (-m names another)")
    return settled, list(dict.fromkeys(notices))


def without_model_of_others(
    roles: Mapping[str, Role], agents: Mapping[str, Loaded], shared: str | None
) -> dict[str, Role]:
    """Leave the job's model away from agents that take none: it is meant for the agents of other arms."""
    return {
        name: replace(role, model=None)
        if role.model == shared and agents[role.agent].spec.takes_model is False
        else role
        for name, role in roles.items()
    }


def default_agent(plugins: Registry, taken: list[str]) -> str:
    """The best-ranked; it is noted in `taken`, because the user did not name it."""
    ranked = sorted(
        (a for a in plugins.all("agent") if a.spec.default_rank is not None), key=lambda a: a.spec.default_rank
    )
    if not ranked:
        raise ConfigurationError(
            "no agent was named.", remedy="Add -a NAME; bench agent list shows the installed ones."
        )
    taken.append(ranked[0].called)
    return ranked[0].called


def agent_for(purpose: str, plugins: Registry) -> Loaded:
    """Return the first installed agent that plays the solution (`reference`) or does nothing (`null`)."""
    found = [a for a in plugins.all("agent") if a.spec.purpose == purpose]
    if not found:
        raise ConfigurationError(
            f"no installed agent has purpose '{purpose}'.", remedy="Run: bench plugins list --kind agent"
        )
    return found[0]
