"""Scenes, the driver or the simulated user that a task asks for.

What is said on the command line wins: scenes and prompts replace, `-a` fills them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchflow_core.contracts.drivers import BaseUser
from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import CapabilityMissing, ConfigurationError, TaskError
from benchflow_core.plugins import Registry
from benchflow_core.rollout.choose import user_driver
from benchflow_core.settings.models import RolloutConfig

__all__ = ["task_driver", "task_scenes", "task_user"]

_KNOWN: Final = ("loop", "scenes", "user")
_OF_A_USER: Final = ("model", "persona")


def task_driver(task: Task, config: RolloutConfig) -> str | None:
    """The driver that the task asks for, with its parameters, where the user leaves it to the task."""
    wish = (task.drive or {}).get("loop")
    if wish is None or config.scenes or config.prompts or config.user is not None:
        return None
    if not isinstance(wish, str):
        raise TaskError(f"task '{task.name}' names no driver: its `loop` is {wish!r}.")
    return wish


def task_scenes(task: Task, config: RolloutConfig) -> list[Scene]:
    """The task's own scenes, or none. What it asks for and nobody here can play is refused, not left out."""
    if not task.drive or config.scenes or config.prompts:
        return []
    if unknown := sorted(set(task.drive) - set(_KNOWN)):
        raise TaskError(
            f"task '{task.name}' wants to be driven by '{unknown[0]}', which nobody knows.",
            remedy=f"Its adapter ('{task.format}') may say: {', '.join(_KNOWN)}.",
        )
    return [_scene(task, scene, config) for scene in task.drive.get("scenes", ())]


def task_user(task: Task, config: RolloutConfig, plugins: Registry) -> BaseUser | None:
    """The simulated user that the task describes, a model with a persona, where nobody else decides the prompts."""
    drive = task.drive or {}
    wish = drive.get("user")
    if not wish or config.scenes or config.prompts or config.driver or config.user is not None:
        user: BaseUser | None = config.user
        return user
    odd = [key for key in wish if key not in _OF_A_USER] or [key for key in ("scenes", "loop") if key in drive]
    if odd or not all(value is None or isinstance(value, str) for value in wish.values()):
        raise CapabilityMissing(
            f"task '{task.name}' wants a simulated user with '{(odd or list(wish))[0]}', which nobody here can play.",
            remedy=f"A user has a {' and a '.join(_OF_A_USER)}. Or give the prompts yourself with --prompt.",
        )
    made: BaseUser = user_driver(plugins).spec.user(wish)
    return made


def _scene(task: Task, scene: Mapping[str, Any], config: RolloutConfig) -> Scene:
    if scene.get("skills_dir"):
        raise CapabilityMissing(f"scene '{scene['name']}' of task '{task.name}' brings skills, which are not loaded.")
    roles = [_role(task, role, config) for role in scene["roles"]]
    return Scene(scene["name"], roles, [Turn(turn["role"], turn["prompt"]) for turn in scene["turns"]])


def _role(task: Task, role: Mapping[str, Any], config: RolloutConfig) -> Role:
    agent = config.agent or role.get("agent")
    if not agent:
        raise ConfigurationError(f"role '{role['name']}' of task '{task.name}' names no agent.", remedy="Add -a NAME.")
    return Role(
        name=role["name"],
        agent=agent,
        model=config.model or role.get("model"),
        reasoning_effort=config.reasoning_effort or role.get("reasoning_effort"),
        env=role.get("env") or {},
        timeout_sec=role.get("timeout_sec"),
        idle_timeout_sec=role.get("idle_timeout_sec"),
    )
