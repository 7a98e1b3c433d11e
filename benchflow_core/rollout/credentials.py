"""Before a fleet starts: one token from every model it will use, so that a refused key is said within seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from benchflow_core.errors import BenchflowError
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.models import gateway_use
from benchflow_core.rollout.plan import Plan
from benchflow_core.settings.models import RolloutConfig

__all__ = ["check_credentials", "failed_credentials"]


async def check_credentials(host: Host, planned: Iterable[tuple[Plan, RolloutConfig]]) -> None:
    """Raise what is wrong with the first model that has something wrong."""
    for problem in (await failed_credentials(host, planned)).values():
        raise problem


async def failed_credentials(host: Host, planned: Iterable[tuple[Plan, RolloutConfig]]) -> dict[str, BenchflowError]:
    """By model, what is wrong with it. Each model is asked once, all at the same time; a replay asks nobody."""
    wanted: dict[tuple[Any, ...], dict[str, Any]] = {}
    for plan, config in planned:
        if config.replay is not None:
            continue
        use = replace(gateway_use(config, plan.task.path.name), record=False, max_tokens=None, max_cost_usd=None)
        for role in plan.roles.values():
            spec = plan.agents[role.agent].spec
            if role.agent not in plan.features.auth and spec.wires and (model := role.model):
                also = tuple(name for option in spec.auth if not option.native for name in option.env)
                key = (model, spec.wires, also, use.gateway, tuple(sorted(use.options.items())))
                wanted[key] = {"model": model, "wires": spec.wires, "also": also, "use": use}
    asked = list(wanted.values())
    ends = await asyncio.gather(*(_asked(host, **one) for one in asked))
    return {one["model"]: end for one, end in zip(asked, ends, strict=True) if end is not None}


async def _asked(host: Host, model: str, **more: Any) -> BenchflowError | None:
    from benchflow_core.gateway import probe

    try:
        await probe(host.models, model, host.env, **more)
    except BenchflowError as error:
        return error
    return None
