"""Skills: folders with a `SKILL.md`, laid where each agent looks for them, or kept out of the box altogether."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchflow_core.contracts.scenes import Scene, Turn
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import CapabilityMissing, ConfigurationError, InfrastructureError, TaskError
from benchflow_core.quick import dataclass
from benchflow_core.rollout import learning
from benchflow_core.rollout.config import RolloutConfig
from benchflow_core.rollout.context import context_of
from benchflow_core.rollout.skill_strip import has_skills, task_skills
from benchflow_core.task.skillset import CASES, find_skills, without_cases

if TYPE_CHECKING:
    from benchflow_core.plugins import Loaded
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["SkillPlan", "bring", "fetch_generated", "fetch_learned", "plan_skills", "self_generating"]

_GENERATED: Final = "generated-skills"
_CREATE: Final = f"""Before you or anybody solves the task below, write down what helps to solve it.
Make one or more skills in the folder {_GENERATED} of the working directory: {_GENERATED}/<name>/SKILL.md, with front
matter (`name`, `description`), then the steps, pitfalls and commands that matter. Do not solve the task itself.

"""


@dataclass(frozen=True, slots=True)
class SkillPlan:
    """What a rollout does about skills."""

    folders: tuple[Path, ...] = ()
    """Brought to the agents, one skill each."""
    strip: bool = False
    """The task's own are kept out of image and box."""
    generated: bool = False
    """The agent writes its own first."""
    by_role: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Of roles with skills of their own: all that such a role gets, in a home of its own."""


def plan_skills(
    config: RolloutConfig, task: Task, agents: Mapping[str, Loaded], scenes: Sequence[Scene] = ()
) -> SkillPlan:
    """Refuse what would not be what its name says."""
    common = _plan_common(config, task, agents)
    own: dict[str, dict[str, Path]] = {}
    for scene in scenes:
        for role in scene.roles:
            for folder in filter(None, (scene.skills_dir, role.skills_dir)):
                own.setdefault(role.name, {}).update({f.name: f for f in _in(Path(folder).expanduser())})
                _refuse_blind({role.agent: agents[role.agent]})
    if own and config.skill_mode == "no-skill":
        raise ConfigurationError(f"role '{next(iter(own))}' brings skills, and --skill-mode no-skill wants none.")
    shared = {folder.name: folder for folder in common.folders}
    return replace(common, by_role={role: tuple({**shared, **found}.values()) for role, found in own.items()})


def _plan_common(config: RolloutConfig, task: Task, agents: Mapping[str, Loaded]) -> SkillPlan:
    mode = config.skill_mode or ("with-skill" if config.skills_dir else None)
    if mode is None:
        return SkillPlan()
    if mode == "no-skill":
        if config.skills_dir:
            raise ConfigurationError("--skills-dir brings skills, and --skill-mode no-skill wants none.")
        if task.environment.skills_dir and task.environment.image:
            raise CapabilityMissing(
                f"image {task.environment.image} of task '{task.name}' has skills in it, which cannot be taken out.",
                remedy="Leave --skill-mode out to run the task as it is.",
            )
        return SkillPlan(strip=_to_strip(config, task))
    _refuse_blind(agents)
    if mode == "self-gen":
        return SkillPlan(strip=_to_strip(config, task), generated=True)
    found = _in(Path(config.skills_dir).expanduser()) if config.skills_dir else task_skills(task)
    if not found:
        raise ConfigurationError(
            f"task '{task.name}' brings no skills (environment/skills).", remedy="Name some with --skills-dir."
        )
    return SkillPlan(folders=tuple(found))


def _to_strip(config: RolloutConfig, task: Task) -> bool:
    for step in task.steps:
        if step.workdir_files and (found := next(step.workdir_files.rglob("SKILL.md"), None)):
            raise CapabilityMissing(
                f"step '{step.name}' of task '{task.name}' lays a skill into the box: {found.relative_to(task.path)}.",
                remedy="Leave --skill-mode out to run the task as it is.",
            )
    return has_skills(task, context_of(task.environment, config.context_root))


def _in(root: Path) -> list[Path]:
    if not (found := find_skills(root)):
        raise ConfigurationError(f"no skill in {root}: a skill is a folder with a SKILL.md.")
    return [folder.resolve() if folder.name in ("", "..") else folder for folder in found]


def _refuse_blind(agents: Mapping[str, Loaded]) -> None:
    blind = [name for name, agent in agents.items() if agent.spec.purpose == "normal" and not agent.spec.skill_paths]
    if blind:
        raise CapabilityMissing(f"agent '{blind[0]}' has no place for skills.", remedy="Use --skill-mode no-skill.")


def self_generating(scenes: Sequence[Scene], task: Task) -> list[Scene]:
    """A scene before the others in which the first role writes skills."""
    first = scenes[0].roles[0]
    creator = replace(first, name="skill-creator")
    return [Scene("skill-gen", [creator], [Turn("skill-creator", _CREATE + task.instruction)]), *scenes]


async def bring(rollout: Rollout) -> None:
    """Into each agent's own place for skills, as its user; never into a prompt."""
    plan = rollout.plan.skills
    await _refuse_left(rollout)
    await learning.bring(rollout, _places(rollout))
    await _bring_own(rollout)
    if not plan.folders and not plan.generated:
        return
    generated = f"{rollout.workdir.rstrip('/')}/{_GENERATED}"
    for place in _places(rollout):
        for folder in plan.folders:
            await _lay(rollout, folder, place)
        if plan.generated:
            script = 'mkdir -p "$1" "$(dirname "$2")" && chmod 777 "$1" && rm -rf "$2" && ln -s "$1" "$2"'
            argv = ("sh", "-c", script, "sh", generated, place)
            done = await rollout.sandbox.exec(argv, user=rollout.agent_user, cwd="/", timeout=60)
            if done.exit_code:
                raise InfrastructureError(f"the place for skills {place} could not be made.")
    names = [folder.name for folder in plan.folders]
    rollout.record.event("skills", {"names": names, "places": _places(rollout), "generated": plan.generated})


async def _lay(rollout: Rollout, folder: Path, place: str | None) -> None:
    source = folder.resolve()
    if (source / CASES).is_file():
        source = rollout.host.work_dir / f"skill-{hashlib.sha256(bytes(folder.resolve())).hexdigest()[:16]}"
        if not source.exists():
            shutil.copytree(folder.resolve(), source, symlinks=True, ignore=without_cases)
    await rollout.sandbox.upload(source, f"{place}/{folder.name}", user=rollout.agent_user)


async def _refuse_left(rollout: Rollout) -> None:
    """Skills that an image makes for itself are in no context: better no score than one under a wrong name."""
    looked, rollout.left_skills_looked_for = rollout.left_skills_looked_for, True
    if looked or rollout.config.skill_mode not in ("no-skill", "self-gen"):
        return
    task = rollout.plan.task
    places = dict.fromkeys(filter(None, (task.environment.skills_dir, *_homes(rollout))))
    if not places:
        return
    done = await rollout.sandbox.exec(("find", "-L", *places, "-name", "SKILL.md"), user="root", cwd="/", timeout=60)
    if done.stdout.strip():
        first = done.stdout.decode("utf-8", "replace").split("\n")[0]
        raise TaskError(f"the image of task '{task.name}' has skills that it makes itself: {first}.")


async def _bring_own(rollout: Rollout) -> None:
    for role, folders in rollout.plan.skills.by_role.items():
        home = rollout.home_of(role)
        made = await rollout.sandbox.exec(("mkdir", "-p", home), user=rollout.agent_user, cwd="/", timeout=60)
        if made.exit_code:
            raise InfrastructureError(f"a home for role '{role}' could not be made in {home}.")
        place = _place(rollout.plan.agents[rollout.plan.roles[role].agent], home, rollout.workdir)
        for folder in folders if place else ():
            await _lay(rollout, folder, place)
        said = {"names": [folder.name for folder in folders], "places": [place], "generated": False}
        rollout.record.event("skills", said, role=role)


async def fetch_learned(rollout: Rollout) -> None:
    """Take what was learned out of the box: a verifier does not see it."""
    await learning.fetch(rollout, _places(rollout))


async def fetch_generated(rollout: Rollout) -> None:
    """What was generated is an artifact, and not in the verifier's way; what was learned is the job's."""
    await fetch_learned(rollout)
    if not rollout.plan.skills.generated:
        return
    folder = f"{rollout.workdir.rstrip('/')}/{_GENERATED}"
    with suppress(FileNotFoundError, InfrastructureError):
        await rollout.sandbox.download(folder, rollout.record.dir.artifacts / _GENERATED)
    await rollout.sandbox.exec(("rm", "-rf", folder), user="root", cwd="/", timeout=60)


def _places(rollout: Rollout) -> list[str]:
    """One per agent: in its home where it looks there, so that the working directory stays the task's."""
    roles = rollout.plan.roles.values()
    found = [_place(rollout.plan.agents[r.agent], rollout.home_of(r.name), rollout.workdir) for r in roles]
    return list(dict.fromkeys(place for place in found if place))


def _homes(rollout: Rollout) -> list[str]:
    """Everywhere that the agents look for skills."""
    paths = [path for agent in rollout.plan.agents.values() for path in agent.spec.skill_paths]
    return [_absolute(path, rollout.agent_home, rollout.workdir) for path in paths]


def _place(agent: Loaded, home: str, workdir: str) -> str | None:
    paths = sorted(agent.spec.skill_paths, key=lambda path: not path.startswith("~"))
    return _absolute(paths[0], home, workdir) if paths else None


def _absolute(path: str, home: str, workdir: str) -> str:
    if path.startswith("~"):
        return home.rstrip("/") + path[1:]
    return path if path.startswith("/") else f"{workdir.rstrip('/')}/{path}"
