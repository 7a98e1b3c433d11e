"""What world a rollout gets: asked of its task and its settings before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchflow_core.contracts import Capability, FeaturePlan, FeatureRun, ImageRequest, PlanView, RunView, Task
from benchflow_core.errors import CapabilityMissing, ConfigurationError
from benchflow_feature_world.plan import WorldPlan, plan_world
from benchflow_feature_world.services import ServiceHook

if TYPE_CHECKING:
    from benchflow_feature_world.settings import WorldSettings

__all__ = ["WorldFeaturePlan", "plan"]


@dataclass(frozen=True, kw_only=True)
class WorldFeaturePlan(FeaturePlan):
    """The world of a rollout, and what of the task and the sandbox bears on it."""

    world: WorldPlan
    task: Task
    request: ImageRequest
    """What the world's own box is made from."""
    capabilities: frozenset[str]
    model: str | None
    """The rollout's own, for services that name none."""
    asked: tuple[str, ...]
    """The services that the settings name."""

    def open(self, run: RunView) -> FeatureRun:
        from benchflow_feature_world.run import WorldRun

        return WorldRun(self, run)


def plan(settings: WorldSettings, view: PlanView) -> WorldFeaturePlan | None:
    """Find the world that a task or its user asks for; refuse one that cannot be had here."""
    hooks = tuple(hook for hook in view.settings["pre_agent_hooks"] if isinstance(hook, ServiceHook))
    world = plan_world(
        view.task,
        services=[*settings.services, *(hook.service for hook in hooks)],
        manifest=settings.environment_manifest,
        choice=settings.state,
        plugins=view,
        env=view.env,
        capabilities=view.capabilities,
    )
    if world is None:
        return None
    model = next((role.model for role in view.roles.values() if role.model), view.settings["model"])
    _refuse(world, view, model)
    beside = world.needs_box and not world.own_box
    selection = world.manifest.environment.task_selection if world.manifest else None
    told = selection is not None and selection.mechanism == "env_var" and selection.inject_into == "exec"
    declared = world.manifest.environment if world.manifest else None
    return WorldFeaturePlan(
        world=world,
        task=view.task,
        request=world.image_request(view.image),
        capabilities=view.capabilities,
        model=model,
        asked=tuple(str(service) for service in settings.services),
        taken_hooks=hooks,
        image=(declared.image or declared.base_image) if declared else None,
        layers=world.layers() if beside else (),
        runtimes=world.runtimes() if beside else (),
        mcp_servers=world.mcp_servers(),
        env={selection.key: view.task.path.name} if told and selection else {},
        ports=world.ports,
        plugins=tuple(world.loaded()),
        host_only=(
            "the environment is one for all rollouts of the job (isolation: persistent)" if world.persistent else ""
        ),
    )


def _refuse(world: WorldPlan, view: PlanView, model: str | None) -> None:
    for service in world.hosted:
        if service.spec.needs_model and not (service.options.get("model") or model):
            raise ConfigurationError(
                f"service '{service.name}' needs a model.", remedy=f"Add -m MODEL, or write {service.name}?model=NAME."
            )
    own = view.task.environment
    if world.manifest is None or Capability.IMAGE_PREBUILT in view.capabilities:
        return
    declared = world.manifest.environment
    by_task = (own.dockerfile or own.image) and declared.task_selection.mechanism == "image"
    if not by_task and not (view.image.allow_substitute and not world.image_starts):
        raise CapabilityMissing(
            f"environment '{world.name}' needs the image {declared.image or declared.base_image}, which this sandbox "
            "cannot have.",
            remedy="Use a sandbox with the capability image-prebuilt"
            + ("." if world.image_starts else ", or add --allow-substitute."),
        )
