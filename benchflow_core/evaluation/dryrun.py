"""`--dry-run`: the whole plan, and everything that is in its way, found without starting anything.

Models are asked for one token each, through the gateway that rollouts would use: a key that is refused is known now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchflow_core.errors import BenchflowError, CapabilityMissing
from benchflow_core.evaluation.executor import find_executor
from benchflow_core.evaluation.items import Item, plan_cells
from benchflow_core.evaluation.tasks import ChosenTasks
from benchflow_core.evaluation.yaml import JobSpec
from benchflow_core.gateway import GatewayUse, probe
from benchflow_core.rollout.host import Host
from benchflow_core.settings.models import JobSettings
from benchflow_core.task import load_task, requested_host_vars, required_capabilities

__all__ = ["plan_report"]


async def plan_report(spec: JobSpec, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What would run, as data. `problems` is empty when the job could start."""
    async with Host(env=env) as host:
        chosen = await asyncio.to_thread(spec.tasks, host.env)
        config = chosen.stamp(spec.config)
        items = await asyncio.to_thread(plan_cells, chosen.paths, config, host)
        models = [await _probed(host, config, *wanted) for wanted in _models(items, config)]
    rows = [_row(item, config) for item in items]
    skipped = [row for row in rows if row["problem"] and _is_skipped(row, config)]
    problems = _problems(row for row in rows if row["problem"] and row not in skipped)
    problems += _executor(config, items, host)
    problems += [f"model {model['model']}: {_told(model['problem'])}" for model in models if model["problem"]]
    return {
        **_about(chosen, config, spec),
        "rollouts": len(rows) * config.trials,
        "skipped": len(skipped),
        "plan": rows,
        "models": models,
        "host_variables": _host_variables(chosen.paths, config, host.env),
        "warnings": list(chosen.warnings),
        "problems": list(dict.fromkeys(problems)),
    }


def _problems(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is wrong, once, with the tasks that it concerns."""
    tasks: dict[str, list[str]] = {}
    for row in rows:
        tasks.setdefault(_told(row["problem"]), []).append(row["task"])
    more = {told: len(set(names)) - 1 for told, names in tasks.items()}
    return [f"{tasks[told][0]}{f' and {n} more' * bool(n)}: {told}" for told, n in more.items()]


def _executor(config: JobSettings, items: Sequence[Item], host: Host) -> list[str]:
    if config.executor is None:
        return []
    try:
        find_executor(config, items, host)
    except BenchflowError as error:
        return [str(error)]
    return []


def _about(chosen: ChosenTasks, config: JobSettings, spec: JobSpec) -> dict[str, Any]:
    arms = [{"name": arm.name, **_plain(arm.settings)} for arm in config.arms()]
    return {
        "tasks": len(chosen.paths),
        "where": chosen.where,
        "trials": config.trials,
        "arms": arms,
        "source": dict(chosen.provenance) if chosen.provenance else None,
        "dataset": dict(chosen.dataset) if chosen.dataset else None,
        "jobs_dir": str(spec.jobs_dir),
        "concurrency": config.concurrency,
        "executor": config.executor,
    }


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Variables by name only: their values may be secret."""
    return {key: sorted(value) if isinstance(value, Mapping) else value for key, value in settings.items()}


def _row(item: Item, config: JobSettings) -> dict[str, Any]:
    plan = item.plan
    row: dict[str, Any] = {
        "task": item.task_path.name,
        "path": str(item.task_path),
        "arm": item.arm,
        "problem": item.refusal.to_json() if item.refusal else None,
    }
    if plan is None:
        return row
    roles = [{"role": role.name, "agent": role.agent, "model": role.model} for role in plan.roles.values()]
    return row | {
        "digest": plan.digest,
        "roles": roles,
        "sandbox": plan.sandbox.name,
        "isolation": plan.isolation,
        "gateways": [gateway.name for gateway in plan.gateways],
        "driver": plan.driver.name,
        "turns": len(plan.steps),
        "needs": dict(required_capabilities(plan.task, isolation=plan.isolation)),
        "agent_timeout": config.timeout if config.timeout is not None else plan.task.agent_timeout,
        "notices": list(plan.notices),
        "plugins": plan.plugins(),
    }


def _is_skipped(row: Mapping[str, Any], config: JobSettings) -> bool:
    return config.skip_unsupported and row["problem"]["code"] == CapabilityMissing("").code


def _told(problem: Mapping[str, Any]) -> str:
    return f"{problem['message']} {problem['remedy']}" if problem["remedy"] else str(problem["message"])


# --- models -------------------------------------------------------------------------------------------------


def _models(items: Sequence[Item], config: JobSettings) -> list[tuple[str, tuple[Any, ...], tuple[str, ...]]]:
    """Each model with the wires of an agent that uses it, once. An agent's own login goes past every gateway."""
    found: dict[tuple[str, tuple[Any, ...], tuple[str, ...]], None] = {}
    for item in items:
        if item.plan is None or config.replay is not None:  # a recording answers in place of the model
            continue
        for role in item.plan.roles.values():
            spec = item.plan.agents[role.agent].spec
            if role.agent not in item.plan.features.auth and spec.wires and (model := role.model):
                also = tuple(name for option in spec.auth if not option.native for name in option.env)
                found[(model, tuple(spec.wires), also)] = None
    return list(found)


async def _probed(
    host: Host, config: JobSettings, model: str, wires: tuple[Any, ...], also: tuple[str, ...]
) -> dict[str, Any]:
    use = GatewayUse(gateway=config.gateway, options=config.gateway_options)
    said: dict[str, Any] = {"model": model, "problem": None}
    try:
        chosen = host.models.plan(model, wires, also=also, use=use)
        said |= {"provider": chosen.target.provider, "gateway": chosen.gateway.name}
        await probe(host.models, model, host.env, wires, also=also, use=use)
    except BenchflowError as error:
        said["problem"] = error.to_json()
    return said


# --- variables of the host ----------------------------------------------------------------------------------


def _host_variables(paths: Sequence[Path], config: JobSettings, env: Mapping[str, str]) -> list[dict[str, Any]]:
    """Which variables of the host the tasks ask for, and whether they would get them."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        with suppress(BenchflowError):
            for variable in requested_host_vars(load_task(path)):
                one = found.setdefault(variable.name, {"name": variable.name, "required": False, "tasks": []})
                one["required"] = one["required"] or variable.required
                one["tasks"].append(path.name)
    return [{**one, "allowed": name in config.allow_env, "set": name in env} for name, one in sorted(found.items())]
