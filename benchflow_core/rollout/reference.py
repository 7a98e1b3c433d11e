"""The certificate: what a task's reference solution changes in its box. It is run once per task, image and sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts.isolation import ReferenceRun
from benchflow_core.contracts.sandboxes import Change
from benchflow_core.errors import BenchflowError
from benchflow_core.results.files import read_json, write_json
from benchflow_core.settings.models import RolloutConfig

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["reference_of"]

_VERSION: Final = "1.0"
_NO_AGENT: Final = "no installed agent plays reference solutions"
_locks: dict[tuple[int, Path], asyncio.Lock] = {}


async def reference_of(rollout: Rollout) -> ReferenceRun | None:
    """Return what the reference solution changes, from the cache or by running it; `None`: the task has no solution.

    A solution that fails is an answer, too: it says so, and covers nothing.
    """
    task = rollout.plan.task
    if task.solution is None and not any(step.solution for step in task.steps):
        return None
    path = _place(rollout)
    async with _locks.setdefault((id(asyncio.get_running_loop()), path), asyncio.Lock()):
        found = _stored(path)
        if found is None:
            rollout.said("reference_started", {"task": task.name})
            found = await _run(rollout)
            rollout.said("reference_finished", found.to_json())
            if found.error is None:
                write_json(path, _to_json(found, rollout))
    write_json(rollout.dir / "certificate.json", _to_json(found, rollout))
    return found


def _place(rollout: Rollout) -> Path:
    image, plan = rollout.image, rollout.plan
    key = json.dumps([plan.digest, image.digest, image.fidelity, plan.sandbox.name])
    return rollout.host.cache / "references" / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"


def _stored(path: Path) -> ReferenceRun | None:
    try:
        data = read_json(path)
        changes = tuple(Change(*row) for row in data["changes"])
        return ReferenceRun(changes, data["rewards"], data["digest"]) if data["schema_version"] == _VERSION else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _to_json(found: ReferenceRun, rollout: Rollout) -> dict[str, Any]:
    return {
        "schema_version": _VERSION,
        "task": rollout.plan.task.name,
        "task_digest": rollout.plan.digest,
        "image_digest": rollout.image.digest,
        "sandbox": rollout.plan.sandbox.name,
        **found.to_json(),
        "changes": [list(asdict(change).values()) for change in found.changes],
    }


_SAME: Final = (
    "sandbox",
    "sandbox_options",
    "allow_substitute",
    "allow_env",
    "base_image_override",
    "context_root",
)
"""Settings that decide what the box is; those of features come along."""


async def _run(rollout: Rollout) -> ReferenceRun:
    """Play the solution in a rollout of its own, verified as left alone; only its list of changes is kept."""
    from benchflow_core.rollout.rollout import Rollout

    agents = [agent for agent in rollout.host.plugins.all("agent") if agent.spec.purpose == "reference"]
    if not agents:
        return _reference((), None, _NO_AGENT)
    config = rollout.config
    of_features = vars(config).keys() - RolloutConfig.model_fields.keys()
    own = RolloutConfig(
        task_path=config.task_path,
        **{name: getattr(config, name) for name in (*_SAME, *of_features)},
        agent=agents[0].name,
        isolation=rollout.plan.isolation,
        jobs_dir=rollout.host.work_dir / "references",
        job_name=rollout.job,
        rollout_name=rollout.name,
    )
    try:
        reference = await Rollout.create(own, rollout.host)
        reference.is_reference = True
        result = await reference.run()
    except BenchflowError as error:
        return _reference((), None, error.message)
    if result.error or result.verifier_error:
        return _reference((), result.rewards, f"the reference solution failed: {result.error or result.verifier_error}")
    if (result.reward or 0) < 1:
        return _reference((), result.rewards, f"the reference solution earns {result.reward}, not 1")
    return _reference(tuple(reference.changes), result.rewards, None)


def _reference(changes: tuple[Change, ...], rewards: dict[str, float] | None, error: str | None) -> ReferenceRun:
    text = json.dumps([list(asdict(change).values()) for change in changes])
    return ReferenceRun(changes, rewards, f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", error)
