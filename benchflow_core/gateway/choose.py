"""Which gateway carries a model to an agent. No gateway is known by name here: they say what they can carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchflow_core.contracts.gateways import GatewaySpec, ModelTarget, Wire
from benchflow_core.errors import ConfigurationError
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.quick import dataclass

__all__ = ["Chosen", "choose_gateway"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The way from an agent to its model."""

    gateway: Loaded
    client_wire: Wire
    target: ModelTarget


def choose_gateway(
    plugins: Registry, wires: Sequence[Wire], targets: Sequence[ModelTarget], name: str | None = None
) -> Chosen:
    """The gateway that was named, or the best-ranked that works here; a way without translation comes first."""
    gateways = [plugins.get("gateway", name)] if name else _ranked(plugins)
    refusals: dict[str, str] = {}
    for client, target in _ways(wires, targets):
        for gateway in gateways:
            spec: GatewaySpec = gateway.spec
            if (client, target.wire) not in spec.wires or target.auth not in spec.logins:
                continue
            found = spec.available()
            if found.ok:
                return Chosen(gateway, client, target)
            refusals[gateway.name] = f"{found.reason} {found.remedy}".strip()
    raise _none(wires, targets, [g.name for g in gateways], refusals)


def _ranked(plugins: Registry) -> list[Loaded]:
    usable = [g for g in plugins.all("gateway") if g.spec.default_rank is not None]
    return sorted(usable, key=lambda g: (g.spec.default_rank, g.name))


def _ways(wires: Sequence[Wire], targets: Sequence[ModelTarget]) -> Iterator[tuple[Wire, ModelTarget]]:
    for target in targets:
        if target.wire in wires:
            yield target.wire, target
    for client in wires:
        for target in targets:
            if client != target.wire:
                yield client, target


def _none(
    wires: Sequence[Wire], targets: Sequence[ModelTarget], installed: Sequence[str], refusals: dict[str, str]
) -> ConfigurationError:
    target = targets[0]
    model = f"{target.provider}/{target.model}"
    if not installed:
        return ConfigurationError(
            f"model '{model}' needs a gateway, and none is installed.", remedy="Run: bench plugins list --kind gateway"
        )
    if refusals:
        said = "; ".join(f"{name}: {reason}" for name, reason in refusals.items())
        return ConfigurationError(f"no gateway for '{model}' works here ({said}).")
    spoken = ", ".join(wires) or "nothing"
    offered = ", ".join(dict.fromkeys(t.wire for t in targets))
    login = "" if target.auth in ("key", "bearer") else f", with a login of kind '{target.auth}'"
    return ConfigurationError(
        f"no installed gateway ({', '.join(installed)}) carries an agent that speaks {spoken} to '{model}', "
        f"which speaks {offered}{login}.",
        remedy="Install a gateway that translates, or choose another model.",
    )
