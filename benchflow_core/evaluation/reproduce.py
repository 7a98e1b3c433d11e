"""Repeating a rollout from its `lock.json`, and saying where this machine differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchflow_core import __version__
from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.dotenv import user_env
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.job import Evaluation, Listener
from benchflow_core.evaluation.tasks import find_again
from benchflow_core.plugins import Loaded, registry
from benchflow_core.plugins.dotted import resolve
from benchflow_core.plugins.policy import CORE
from benchflow_core.results.files import read_json
from benchflow_core.settings.models import JobSettings
from benchflow_core.settings.written import read
from benchflow_core.task import task_digest

__all__ = ["reproduction"]


def reproduction(
    rollout: Path, jobs_dir: Path, *, allow_drift: bool, listener: Listener, warn: Callable[[str], None]
) -> tuple[Evaluation, list[str]]:
    """A job of one rollout with the locked settings, and what differs. Drift is refused unless it is allowed."""
    lock = _read(rollout)
    task = Path(lock["task"]["path"])
    if not task.is_dir():
        digest = lock["task"]["digest"]
        again = find_again(task.name, digest, lock["task"].get("source"), user_env())
        if again is None:
            raise ConfigurationError(
                f"the task of this rollout is no longer at {task}.", remedy=f"Put it back; its digest is {digest}."
            )
        task = again
    drift = _drift(lock, task)
    if drift and not allow_drift:
        raise ConfigurationError(
            f"not the same any more: {'; '.join(drift)}.", remedy="Restore them, or add --allow-drift."
        )
    job = Evaluation([task], jobs_dir, _config(lock), listener=listener, warn=warn)
    return job, drift


def _read(rollout: Path) -> dict[str, Any]:
    path = rollout / "lock.json"
    try:
        lock: dict[str, Any] = read_json(path)
        lock["task"]["path"], lock["roles"], lock["drive"]["prompts"]
    except FileNotFoundError:
        raise ConfigurationError(
            f"{rollout} has no lock.json.", remedy="Name the folder of a finished rollout."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{path} is not a lock file: {error}.") from error
    return lock


def _drift(lock: dict[str, Any], task: Path) -> list[str]:
    found = []
    if lock["core"]["version"] != __version__:
        found.append(f"core was {lock['core']['version']}, is {__version__}")
    for stamp in lock["plugins"]:
        if not stamp["distribution"]:
            continue
        now = _plugin_now(stamp)
        moved = now.distribution != stamp["distribution"] and stamp["distribution"] != CORE
        if moved or now.version != stamp["version"]:
            before = f"{stamp['distribution']} {stamp['version']}"
            found.append(f"{stamp['kind']} {stamp['name']} was {before}, is {now.distribution} {now.version}")
    digest = task_digest(task)
    if digest != lock["task"]["digest"]:
        found.append(f"task {lock['task']['name']} was {lock['task']['digest'][:19]}…, is {digest[:19]}…")
    return [*found, *_feature_drift(lock)]


def _plugin_now(stamp: dict[str, str]) -> Loaded:
    """Return the plugin of a stamp; one that left the core is found in the package that has it now."""
    owner = "" if stamp["distribution"] == CORE else f"{stamp['distribution']}::"
    return registry().get(stamp["kind"], f"{owner}{stamp['name']}")


def _feature_drift(lock: dict[str, Any]) -> list[str]:
    """What features say of their own part of a lock."""
    found: list[str] = []
    now = SimpleNamespace(mentioned=registry().mentioned, digest_of=task_digest)
    for feature in registry().all("feature"):
        if feature.spec.drift:
            found += resolve(feature.spec.drift, feature.who)(lock, now, user_env())
    return found


def _config(lock: dict[str, Any]) -> JobSettings:
    """Return what was asked for, with the sandbox, the isolation, the roles and the prompts that were used."""
    limits, world = lock["limits"], lock.get("world") or {}
    older = {
        "sandbox_options": lock["sandbox"]["options"],
        "sandbox_setup_timeout": limits["setup"],
        "agent_idle_timeout": limits["idle"],
        "timeout": limits["agent_timeout"],
    }
    if world:
        older["services"], older["state"] = world.get("asked") or [], world.get("chosen")
        older["environment_manifest"] = world["manifest"] if world.get("pinned_by") == "option" else None
    return read(JobSettings, {**older, **lock["settings"]}, {}, "lock.json").model_copy(
        update={
            **dict.fromkeys(("agent", "model", "reasoning_effort", "prompts", "driver", "arm", "dataset")),
            "driver_params": {},
            "scenes": _scenes(lock),
            "sandbox": lock["sandbox"]["name"],
            "isolation": lock["verification"]["isolation"],
            "source_provenance": lock["task"].get("source"),
            "concurrency": 1,
        }
    )


def _scenes(lock: dict[str, Any]) -> list[Scene]:
    """As they were written; where something else drove it, the prompts as they were rendered."""
    known = {name: Role(name, **value) for name, value in lock["roles"].items()}
    if written := lock["drive"].get("scenes"):
        return [
            Scene(**{**scene, "roles": [known[name] for name in scene["roles"]], "turns": _turns(scene["turns"])})
            for scene in written
        ]
    roles = list(known.values())
    scenes: list[Scene] = []
    for prompt in lock["drive"]["prompts"]:
        turn = Turn(prompt["role"], prompt["prompt"])
        if scenes and scenes[-1].name == prompt["scene"]:
            scenes[-1] = Scene(prompt["scene"], roles, [*scenes[-1].turns, turn])
        else:
            scenes.append(Scene(prompt["scene"], roles, [turn]))
    return scenes or [Scene("default", roles, [Turn(roles[0].name)])]


def _turns(rows: Sequence[dict[str, Any]]) -> list[Turn]:
    return [Turn(**row) for row in rows]
