"""What a rollout does about skills, settled before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts import FeaturePlan, ImageRequest, LoadedPlugin, PlanView, RunView, Scene, Task, Turn
from benchflow_core.errors import CapabilityMissing, ConfigurationError
from benchflow_feature_standard.skills.folders import has_skills, named, required_skills, task_skills

if TYPE_CHECKING:
    from benchflow_feature_standard.skills.run import SkillRun
    from benchflow_feature_standard.skills.settings import SkillSettings

__all__ = ["GENERATED", "SkillPlan", "drift", "plan"]

GENERATED: Final = "generated-skills"
_CREATOR: Final = "skill-creator"
_CREATE: Final = f"""Before you or anybody solves the task below, write down what helps to solve it.
Make one or more skills in the folder {GENERATED} of the working directory: {GENERATED}/<name>/SKILL.md, with front
matter (`name`, `description`), then the steps, pitfalls and commands that matter. Do not solve the task itself.

"""


@dataclass(frozen=True, kw_only=True)
class SkillPlan(FeaturePlan):
    """What a rollout does about skills."""

    task: Task
    digest: str
    """The task's."""
    agents: Mapping[str, LoadedPlugin]
    """Role to its agent."""
    folders: tuple[Path, ...] = ()
    """Brought to the agents, one skill each."""
    by_role: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Of roles with skills of their own: all that such a role gets, in a home of its own."""
    generated: bool = False
    """The agent writes its own first."""
    without: bool = False
    """Agents are to find no skill of the task's or of the image's."""
    strip: bool = False
    """The image is built without the skills that its context has."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """By folder, of those that the task does not bring itself."""

    def build(self, request: ImageRequest, folder: Path) -> ImageRequest:
        if not self.strip:
            return request
        from benchflow_feature_standard.skills.strip import without_skills

        return without_skills(request, self.task, folder / f"no-skill-{self.digest[-16:]}")

    def open(self, run: RunView) -> SkillRun:
        from benchflow_feature_standard.skills.run import SkillRun

        return SkillRun(self, run)


def plan(settings: SkillSettings, view: PlanView) -> SkillPlan:
    """Find the skills, and refuse what would not be what its name says."""
    skills_dir = None if view.settings.get("job_mode") == "sequential-shared" else settings.skills_dir
    mode = settings.skill_mode or ("with-skill" if skills_dir else None)
    own = _own_skills(view)
    without = mode in ("no-skill", "self-gen")
    if without:
        _refuse_skills_of_steps(view.task)
    if mode == "no-skill":
        _refuse_unremovable(view.task, skills_dir, own)
    elif mode:
        _refuse_without_place(view.agents)
    folders = _chosen(view.task, skills_dir) if mode == "with-skill" else ()
    by_role = {role: tuple({**named(folders), **found}.values()) for role, found in own.items()}
    agents = {name: view.agents[role.agent] for name, role in view.roles.items()}
    found = SkillPlan(
        task=view.task, digest=view.digest, agents=agents, folders=folders, by_role=by_role, without=without,
        strip=without and has_skills(view.task, view.image.context),
        digests=_digests(view, [*folders, *(one for chosen in by_role.values() for one in chosen)]),
        homes={role: f".benchflow-{role}" for role in by_role},
    )  # fmt: skip
    return _generating(found, view) if mode == "self-gen" else found


def _generating(found: SkillPlan, view: PlanView) -> SkillPlan:
    """Put a scene before the others in which the first role writes skills."""
    first = view.scenes[0].roles[0]
    turn = Turn(_CREATOR, _CREATE + view.task.instruction)
    scene = Scene("skill-gen", [replace(first, name=_CREATOR)], [turn])
    agents = {**found.agents, _CREATOR: view.agents[first.agent]}
    return replace(found, generated=True, scenes=(scene, *view.scenes), agents=agents)


def _own_skills(view: PlanView) -> dict[str, dict[str, Path]]:
    """Return the skills of each role that has its own, by the name of their folder."""
    own: dict[str, dict[str, Path]] = {}
    for scene in view.scenes:
        for role in scene.roles:
            for folder in filter(None, (scene.skills_dir, role.skills_dir)):
                own.setdefault(role.name, {}).update(named(required_skills(Path(folder).expanduser())))
                _refuse_without_place({role.agent: view.agents[role.agent]})
    return own


def _chosen(task: Task, skills_dir: str | None) -> tuple[Path, ...]:
    found = required_skills(Path(skills_dir).expanduser()) if skills_dir else task_skills(task)
    if not found:
        raise ConfigurationError(
            f"task '{task.name}' brings no skills (environment/skills).", remedy="Name some with --skills-dir."
        )
    return tuple(found)


def _refuse_unremovable(task: Task, skills_dir: str | None, own: Mapping[str, Any]) -> None:
    if skills_dir:
        raise ConfigurationError("--skills-dir brings skills, and --skill-mode no-skill wants none.")
    if own:
        raise ConfigurationError(f"role '{next(iter(own))}' brings skills, and --skill-mode no-skill wants none.")
    if task.environment.skills_dir and task.environment.image:
        raise CapabilityMissing(
            f"image {task.environment.image} of task '{task.name}' has skills in it, which cannot be taken out.",
            remedy="Leave --skill-mode out to run the task as it is.",
        )


def _refuse_skills_of_steps(task: Task) -> None:
    for step in task.steps:
        if step.workdir_files and (found := next(step.workdir_files.rglob("SKILL.md"), None)):
            raise CapabilityMissing(
                f"step '{step.name}' of task '{task.name}' lays a skill into the box: {found.relative_to(task.path)}.",
                remedy="Leave --skill-mode out to run the task as it is.",
            )


def _refuse_without_place(agents: Mapping[str, LoadedPlugin]) -> None:
    for name, agent in agents.items():
        if agent.spec.purpose == "normal" and not agent.spec.skill_paths:
            raise CapabilityMissing(f"agent '{name}' has no place for skills.", remedy="Use --skill-mode no-skill.")


def _digests(view: PlanView, folders: list[Path]) -> dict[str, str]:
    own = view.task.path.resolve()
    found = sorted({folder.resolve() for folder in folders})
    return {str(folder): view.digest_of(folder) for folder in found if not folder.is_relative_to(own)}


def drift(lock: Mapping[str, Any], now: Any, env: Mapping[str, str]) -> Iterator[str]:
    """Say which skills of a `lock.json` are not what they were."""
    for folder, was in (lock.get("skills") or {}).items():
        if not Path(folder).is_dir():
            yield f"skill {folder} is gone"
        elif now.digest_of(Path(folder)) != was:
            yield f"skill {folder} says something else now"
