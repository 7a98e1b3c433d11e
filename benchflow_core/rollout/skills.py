"""Skills: folders with a `SKILL.md`, laid where each agent looks for them, or kept out of the box altogether."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.contracts.tasks import Task
from benchflow_core.drive.scenes import Scene, Turn
from benchflow_core.errors import CapabilityMissing, ConfigurationError, InfrastructureError
from benchflow_core.rollout.config import RolloutConfig
from benchflow_core.task.skillset import find_skills

if TYPE_CHECKING:
    from benchflow_core.plugins import Loaded
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["SkillPlan", "bring", "fetch_generated", "plan_skills", "self_generating", "without_skills"]

_BUNDLED: Final = "skills"
_GENERATED: Final = "generated-skills"
_CREATE: Final = f"""Before you or anybody solves the task below, write down what helps to solve it.
Make one or more skills in the folder {_GENERATED} of the working directory: {_GENERATED}/<name>/SKILL.md, with front
matter (`name`, `description`), then the steps, pitfalls and commands that matter. Do not solve the task itself.

"""
_INSTRUCTION: Final = re.compile(r"^\s*(COPY|ADD)\s+(.*)$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class SkillPlan:
    """What a rollout does about skills."""

    folders: tuple[Path, ...] = ()
    """Brought to the agents, one skill each."""
    strip: bool = False
    """The task's own are kept out of image and box."""
    generated: bool = False
    """The agent writes its own first."""


def plan_skills(config: RolloutConfig, task: Task, agents: Mapping[str, Loaded]) -> SkillPlan:
    """Refuse what would not be what its name says."""
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
        return SkillPlan(strip=_bundled(task) is not None)
    blind = [name for name, agent in agents.items() if agent.spec.purpose == "normal" and not agent.spec.skill_paths]
    if blind:
        raise CapabilityMissing(f"agent '{blind[0]}' has no place for skills.", remedy="Use --skill-mode no-skill.")
    if mode == "self-gen":
        return SkillPlan(strip=_bundled(task) is not None, generated=True)
    root = Path(config.skills_dir).expanduser() if config.skills_dir else _bundled(task)
    if root is None:
        raise ConfigurationError(
            f"task '{task.name}' brings no skills (environment/{_BUNDLED}).", remedy="Name some with --skills-dir."
        )
    if not (found := find_skills(root)):
        raise ConfigurationError(f"no skill in {root}: a skill is a folder with a SKILL.md.")
    return SkillPlan(folders=tuple(found))


def self_generating(scenes: Sequence[Scene], task: Task) -> list[Scene]:
    """A scene before the others in which the first role writes skills."""
    first = scenes[0].roles[0]
    creator = replace(first, name="skill-creator")
    return [Scene("skill-gen", [creator], [Turn("skill-creator", _CREATE + task.instruction)]), *scenes]


def without_skills(request: ImageRequest, task: Task, target: Path) -> ImageRequest:
    """The request on a copy of the task's context that has no trace of its skills."""
    context = task.environment.context
    if context is None:
        return request
    if not target.exists():
        staged = target.with_name(f".{target.name}")
        shutil.rmtree(staged, ignore_errors=True)
        shutil.copytree(context, staged, symlinks=True, ignore=lambda folder, names: _skip(folder, names, context))
        for file in staged.glob("*Dockerfile*"):
            file.write_text(_without_copies(file.read_text("utf-8")), "utf-8")
        staged.rename(target)

    def moved(path: Path | None) -> Path | None:
        return target / path.relative_to(context) if path is not None and path.is_relative_to(context) else path

    return replace(request, context=target, dockerfile=moved(request.dockerfile), compose=moved(request.compose))


async def bring(rollout: Rollout) -> None:
    """Into each agent's own place for skills, as its user; never into a prompt."""
    plan = rollout.plan.skills
    if not plan.folders and not plan.generated:
        return
    generated = f"{rollout.workdir.rstrip('/')}/{_GENERATED}"
    for place in _places(rollout):
        for folder in plan.folders:
            await rollout.sandbox.upload(folder, f"{place}/{folder.name}", user=rollout.agent_user)
        if plan.generated:
            script = 'mkdir -p "$1" "$(dirname "$2")" && chmod 777 "$1" && rm -rf "$2" && ln -s "$1" "$2"'
            argv = ("sh", "-c", script, "sh", generated, place)
            done = await rollout.sandbox.exec(argv, user=rollout.agent_user, cwd="/", timeout=60)
            if done.exit_code:
                raise InfrastructureError(f"the place for skills {place} could not be made.")
    names = [folder.name for folder in plan.folders]
    rollout.record.event("skills", {"names": names, "places": _places(rollout), "generated": plan.generated})


async def fetch_generated(rollout: Rollout) -> None:
    """What was generated is an artifact, and not in the verifier's way."""
    if not rollout.plan.skills.generated:
        return
    folder = f"{rollout.workdir.rstrip('/')}/{_GENERATED}"
    with suppress(FileNotFoundError, InfrastructureError):
        await rollout.sandbox.download(folder, rollout.record.dir.artifacts / _GENERATED)
    await rollout.sandbox.exec(("rm", "-rf", folder), user="root", cwd="/", timeout=60)


def _places(rollout: Rollout) -> list[str]:
    """One per agent: in its home where it looks there, so that the working directory stays the task's."""
    found = []
    for agent in rollout.plan.agents.values():
        paths = sorted(agent.spec.skill_paths, key=lambda path: not path.startswith("~"))
        if paths:
            found.append(_absolute(paths[0], rollout.agent_home, rollout.workdir))
    return list(dict.fromkeys(found))


def _absolute(path: str, home: str, workdir: str) -> str:
    if path.startswith("~"):
        return home.rstrip("/") + path[1:]
    return path if path.startswith("/") else f"{workdir.rstrip('/')}/{path}"


def _bundled(task: Task) -> Path | None:
    context = task.environment.context or task.path / "environment"
    return context / _BUNDLED if (context / _BUNDLED).is_dir() else None


def _skip(folder: str, names: Iterable[str], context: Path) -> set[str]:
    return {name for name in names if Path(folder) == context and name == _BUNDLED}


def _without_copies(dockerfile: str) -> str:
    """COPY and ADD of the skills folder, gone; a line with other sources keeps those."""
    text = re.sub(r"\\\n", "\\\\\0", dockerfile)
    lines = []
    for line in text.split("\n"):
        found = _INSTRUCTION.match(line)
        lines.append(line if not found else _kept_copy(line, found))
    return "\n".join(line for line in lines if line is not None).replace("\\\0", "\\\n")


def _kept_copy(line: str, found: re.Match[str]) -> str | None:
    words = [word for word in re.sub(r'[\[\]",\\\0]', " ", found[2]).split() if not word.startswith("--")]
    flags = [word for word in found[2].split() if word.startswith("--")]
    sources = [word for word in words[:-1] if word.removeprefix("./").split("/")[0] != _BUNDLED]
    if len(sources) == len(words) - 1:
        return line
    return f"{found[1]} {' '.join([*flags, *sources, words[-1]])}" if sources else None
