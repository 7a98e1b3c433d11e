"""`lock.json`: what another lab needs to repeat a rollout. `bench eval reproduce` reads only this file."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core import __version__
from benchflow_core.contracts.scenes import Role
from benchflow_core.contracts.settings import secret_names
from benchflow_core.results.clock import now
from benchflow_core.settings.written import with_whole_paths

if TYPE_CHECKING:
    from benchflow_core.rollout.plan import Plan
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["LOCK_VERSION", "lock_of"]

LOCK_VERSION = "1.0"


def lock_of(rollout: Rollout) -> dict[str, Any]:
    """Versions and hashes of everything that took part, the settings in force, and the circumstances."""
    config, plan, result = rollout.config, rollout.plan, rollout.result
    return {
        "schema_version": LOCK_VERSION,
        "written_at": now(),
        "core": {"version": __version__, "python": platform.python_version()},
        "plugins": plan.plugins(),
        "agents": {name: _agent(a) for name, a in plan.agents.items()},
        "task": {
            "name": plan.task.name,
            "version": plan.task.version,
            "digest": plan.digest,
            "path": str(plan.task.path.resolve()),
            "format": plan.task.format,
            "source": result.source,
        },
        "image": _image(rollout),
        "sandbox": {
            "name": plan.sandbox.name,
            "options": dict(config.sandbox_options),
            "capabilities": sorted(plan.capabilities),
            "network": asdict(plan.task.environment.network),
            "resources": asdict(plan.task.environment.resources),
        },
        "host": {**_machine(), "load": list(os.getloadavg()), "during": rollout.load},
        "verification": {"isolation": result.isolation, "findings": result.findings, "asked": config.isolation},
        "drive": {
            "driver": plan.driver.name,
            "params": dict(plan.driver_params),
            "prompts": rollout.record.prompts,
            "scenes": _scenes(plan),
        },
        "roles": {name: _role(role) for name, role in plan.roles.items()},
        "limits": {
            "agent_timeout": config.timeout,
            "task_agent_timeout": plan.task.agent_timeout,
            "verifier_timeout": plan.task.verifier.timeout,
            "idle": config.agent_idle_timeout,
            "setup": config.sandbox_setup_timeout,
        },
        "settings": with_whole_paths(config),
        "worker": rollout.host.worker,
        "concurrency": rollout.host.concurrency,
        "order": config.order,
        "seed": config.seed,
        "attempt": config.attempt,
        "trial": config.trial,
        "started_at": result.started_at,
        "finished_at": result.finished_at,
        "seconds": result.timing.get("total"),
        **rollout.features.keys("lock"),
    }


def _role(role: Role) -> dict[str, Any]:
    """All of it but its secrets."""
    hidden = set(secret_names(role.env))
    found = asdict(role) | {"env": {name: value for name, value in role.env.items() if name not in hidden}}
    return {key: value for key, value in found.items() if key != "name"} | {"skills_dir": _absolute(role.skills_dir)}


def _scenes(plan: Plan) -> list[dict[str, Any]] | None:
    """As they were written, where scenes are what drove it."""
    if not plan.driver.spec.default:
        return None
    return [
        {
            "name": scene.name,
            "roles": [role.name for role in scene.roles],
            "turns": [asdict(turn) for turn in scene.turns],
            "skills_dir": _absolute(scene.skills_dir),
            "concurrent": scene.concurrent,
            "stop_when": scene.stop_when,
        }
        for scene in plan.scenes
    ]


def _absolute(folder: str | None) -> str | None:
    return str(Path(folder).expanduser().resolve()) if folder else None


@cache
def _machine() -> dict[str, Any]:
    return {"platform": platform.platform(), "machine": platform.machine(), "cpus": os.cpu_count()}


def _agent(agent: Any) -> dict[str, Any]:
    layers = [layer.key for layer in agent.spec.layers]
    return {**agent.stamp(), "agent_version": agent.spec.version, "layers": layers}


def _image(rollout: Rollout) -> dict[str, Any] | None:
    image = rollout.started_image
    if image is None:
        return None
    return {
        "ref": image.ref,
        "digest": image.digest,
        "fidelity": image.fidelity,
        "workdir": image.workdir,
        "runtimes": dict(image.runtimes),
    }
