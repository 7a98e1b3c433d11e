"""Scenes: which roles take turns, in which order. A driver plays them as a flat list of turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Final

from benchflow_core.contracts.settings import Secret
from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass

__all__ = ["DriveStep", "Role", "Scene", "Turn", "compile_scenes_to_steps"]


@dataclass(frozen=True)
class Role:
    """Who speaks: an agent with its model and limits."""

    name: str
    agent: str
    model: str | None = None
    reasoning_effort: str | None = None
    env: Annotated[Mapping[str, str], Secret()] = field(default_factory=dict)
    timeout_sec: float | None = None
    """Of one turn."""
    idle_timeout_sec: float | None = None
    skills_dir: str | None = None
    """Skills for this role alone: it gets a home of its own, and they are in it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The agent plugin's own."""
    read_only: bool = False
    """It can read everything it is shown and write nothing but its messages, its home and temporary files."""
    oracle_access: bool | None = None
    """May it read `/solution`? `None`: where it shares scenes with others and its prompts name that folder."""


@dataclass(frozen=True)
class Turn:
    """One prompt to one role. No prompt: the task's instruction."""

    role: str
    prompt: str | None = None


@dataclass(frozen=True)
class Scene:
    """One region of interaction. Sessions live through it and end with it."""

    name: str = "default"
    roles: Sequence[Role] = ()
    turns: Sequence[Turn] = ()
    skills_dir: str | None = None
    """Skills for every role of the scene."""
    concurrent: bool = False
    """Roles do not wait for each other: each works through its own turns."""
    stop_when: str | None = None
    """A message between roles that contains this ends the scene; the turns that are left are not played."""

    @classmethod
    def single(
        cls,
        *,
        agent: str,
        model: str | None = None,
        reasoning_effort: str | None = None,
        prompts: Sequence[str | None] | None = None,
        role_name: str = "agent",
        skills_dir: str | None = None,
        **role: Any,
    ) -> Scene:
        """One role, one turn per prompt."""
        who = Role(role_name, agent, model, reasoning_effort, **role)
        return cls(roles=[who], turns=[Turn(role_name, p) for p in (prompts or [None])], skills_dir=skills_dir)


_PLAIN: Final = re.compile(r"\w[\w .-]{0,63}")


@dataclass(frozen=True)
class DriveStep:
    """One turn in its place. `ends_scene`: another scene follows, and every agent process is killed before it."""

    name: str
    scene: str
    role: str
    prompt: str | None
    ends_scene: bool = False
    roles: tuple[str, ...] = ()
    """Everybody in the scene."""
    concurrent: bool = False
    stop_when: str | None = None


def compile_scenes_to_steps(scenes: Sequence[Scene]) -> list[DriveStep]:
    """`scene-i-turn-j-role`, in order. A turn of a role its scene does not have is refused here."""
    steps = []
    for i, scene in enumerate(scenes, 1):
        known = [role.name for role in scene.roles]
        if not known:
            raise ConfigurationError(f"scene '{scene.name}' has no roles.", remedy="Give it at least one role.")
        if len(set(known)) != len(known):
            raise ConfigurationError(f"scene '{scene.name}' names a role twice: {', '.join(known)}.")
        if odd := [name for name in known if not _PLAIN.fullmatch(name)]:
            raise ConfigurationError(
                f"scene '{scene.name}' has a role {odd[0]!r}: folders and files are called by it.",
                remedy="Use letters, digits, '.', '_', '-' and spaces, at most 64.",
            )
        for role in scene.roles:
            if (role.timeout_sec is not None and role.timeout_sec <= 0) or (role.idle_timeout_sec or 0) < 0:
                raise ConfigurationError(f"role '{role.name}' of scene '{scene.name}' has no time: a limit is over 0.")
        if scene.stop_when is not None and (len(known) < 2 or scene.concurrent or not scene.stop_when.strip()):
            raise ConfigurationError(
                f"scene '{scene.name}' has stop_when, which needs a text and roles that take turns.",
                remedy="Leave it out, or give the scene two roles and no concurrent: true.",
            )
        turns = list(scene.turns) or [Turn(known[0])]
        for j, turn in enumerate(turns, 1):
            if turn.role not in known:
                raise ConfigurationError(
                    f"turn {j} of scene '{scene.name}' is for role '{turn.role}', which the scene does not have.",
                    remedy=f"Roles there: {', '.join(known)}.",
                )
            name = f"scene-{i}-turn-{j}-{turn.role}"
            ends = j == len(turns) and i < len(scenes)
            step = DriveStep(name, scene.name, turn.role, turn.prompt, ends, tuple(known), scene.concurrent)
            steps.append(replace(step, stop_when=scene.stop_when))
    return steps
