"""What each rollout of a job takes, and what there is: from the plan, before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from benchflow_core.contracts.executors import Capacity
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.evaluation.items import Item
from benchflow_core.evaluation.jobfile import Entry
from benchflow_core.evaluation.schedule import Need, Slots
from benchflow_core.quick import dataclass
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.hostwatch import host_cpus, host_memory_mb
from benchflow_core.rollout.plan import Plan
from benchflow_core.settings.models import JobSettings

__all__ = ["Room", "fits_at_once", "make_room"]

_KINDS = ("sandbox", "provider", "agent")
_CLOUD = 16
"""Boxes at a time in a sandbox that neither uses this host nor says what it can take."""


_NOTHING = Need(cpus=0, memory_mb=0, on_host=False)


@dataclass(frozen=True)
class Room:
    """What a job's rollouts take, and what there is for them."""

    plans: list[Plan]
    needs: Mapping[int, Need]
    slots: Slots

    def need(self, entry: Entry) -> Need:
        """One that is only recorded as refused takes nothing."""
        return self.needs.get(id(entry.item.plan), _NOTHING)


def make_room(config: JobSettings, items: Sequence[Item], host: Host, capacity: Capacity | None = None) -> Room:
    """Of every plan once. Refuses budgets that nobody could keep; tells the host how many will run together.

    `capacity`: of an executor's workers, in the place of this host's.
    """
    plans = list({id(item.plan): item.plan for item in items if item.plan is not None}.values())
    needs: dict[int, Need] = {}
    prices: dict[str, bool] = {}
    for plan in plans:
        providers = _providers_of(plan, host)
        needs[id(plan)] = _need_of(plan, providers)
        prices |= {name: known and prices.get(name, True) for name, known in providers.items()}
    _check_budget(config, prices)
    slots = _slots_for(config, plans, capacity or Capacity(host_cpus(), host_memory_mb()))
    _refuse_idle_limits(config, {pool for need in needs.values() for pool in need.pools})
    host.set_concurrency(fits_at_once(slots, needs.values(), len(items)))
    return Room(plans, needs, slots)


def _need_of(plan: Plan, providers: Iterable[str]) -> Need:
    resources, spec = plan.task.environment.resources, plan.sandbox.spec
    pools = [f"sandbox:{plan.sandbox.name}"]
    pools += [f"agent:{name}" for name in sorted(plan.agents)]
    pools += [f"provider:{name}" for name in sorted(providers)]
    return Need.of(resources.cpus, resources.memory_mb, on_host=spec.on_host, pools=pools)


def _providers_of(plan: Plan, host: Host) -> dict[str, bool]:
    """The model providers that its agents ask, and whether their prices are known."""
    found: dict[str, bool] = {}
    for role in plan.roles.values():
        spec = plan.agents[role.agent].spec
        if spec.wires and (model := role.model):
            from benchflow_core.gateway import Models

            also = [name for option in spec.auth if not option.native for name in option.env]
            with suppress(BenchflowError):  # a login of the agent's own, or a replay: no provider of ours is asked
                target = Models(host.plugins, host.env, Path).plan(model, spec.wires, also=also).target
                found[target.provider] = found.get(target.provider, True) and bool(target.prices)
    return found


def _slots_for(config: JobSettings, plans: Iterable[Plan], there_is: Capacity) -> Slots:
    """The host's room, and a limit per named pool: the user's, else what a sandbox says it can take."""
    limits: dict[str, int] = {}
    for plan in plans:
        most = plan.sandbox.spec.max_concurrency
        if most is None and not plan.sandbox.spec.on_host and config.concurrency is None:
            most = _CLOUD
        if most is not None:
            limits[f"sandbox:{plan.sandbox.name}"] = most
    for name, most in config.limits.items():
        kind, colon, rest = name.partition(":")
        if kind not in _KINDS or not colon or not rest or most < 1:
            raise ConfigurationError(
                f"limit '{name}={most}' is not understood.",
                remedy=f"Write KIND:NAME=N with KIND one of {', '.join(_KINDS)}.",
            )
        limits[name] = most
    return Slots(there_is.cpus, there_is.memory_mb, config.concurrency, limits)


def _refuse_idle_limits(config: JobSettings, used: set[str]) -> None:
    """A limit on something that no rollout uses is a slip of the keyboard."""
    if idle := sorted(set(config.limits) - used):
        raise ConfigurationError(
            f"limit '{idle[0]}' bounds nothing in this job.", remedy=f"What can be bounded: {', '.join(sorted(used))}."
        )


def fits_at_once(slots: Slots, needs: Iterable[Need], total: int) -> int:
    """The most rollouts that will ever run together: what providers and gateways get ready for."""
    if slots.concurrency is not None:
        return max(min(slots.concurrency, total), 1)
    most = 1
    for need in set(needs):
        bounds = [slots.limits[p] for p in need.pools if p in slots.limits] + [total]
        if need.on_host:
            bounds += [int(slots.cpus / need.cpus) if need.cpus else total]
            bounds += [int(slots.memory_mb / need.memory_mb) if need.memory_mb else total]
        most = max(most, min(bounds))
    return most


def _check_budget(config: JobSettings, prices: Mapping[str, bool]) -> None:
    """A limit that nobody could keep is refused, not forgotten."""
    unknown = sorted(name for name, known in prices.items() if not known)
    if config.max_cost is not None and unknown:
        raise ConfigurationError(
            f"--max-cost cannot be kept: the prices of {', '.join(unknown)} are not known.",
            remedy="Use --max-tokens instead.",
        )
