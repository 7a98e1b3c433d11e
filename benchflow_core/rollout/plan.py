"""The plan of a rollout: everything is named, loaded and checked before anything starts."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.common import Layer, Runtime
from benchflow_core.contracts.core import LoadedPlugin
from benchflow_core.contracts.drivers import BaseUser
from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.contracts.scenes import DriveStep, Role, Scene, compile_scenes_to_steps
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import CapabilityMissing, ConfigurationError
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.quick import dataclass
from benchflow_core.results.certified import drift
from benchflow_core.rollout.access import check_access, oracle_roles
from benchflow_core.rollout.choose import (
    default_driver,
    find_agent,
    find_verifier,
    sandbox_capabilities,
    take_sandbox,
    user_driver,
)
from benchflow_core.rollout.context import context_of
from benchflow_core.rollout.defaults import default_agent, with_models, without_model_of_others
from benchflow_core.rollout.feature_views import settings_view
from benchflow_core.rollout.features import FeaturePlans, RolloutPlanView, plan_features
from benchflow_core.rollout.models import gateway_use
from benchflow_core.rollout.refuse import (
    refuse_agent,
    refuse_host_vars,
    refuse_judge,
    refuse_missing,
    refuse_no_user,
    refuse_options,
    refuse_speechless,
    refuse_uncounted,
    refuse_unheard,
)
from benchflow_core.rollout.task_scenes import task_driver, task_scenes, task_user
from benchflow_core.settings.models import RolloutConfig
from benchflow_core.settings.words import driver_params, driver_word
from benchflow_core.task import (
    adapter_of,
    load_task,
    task_digest,
    wanted_capabilities,
)
from benchflow_core.verify import choose

if TYPE_CHECKING:
    from benchflow_core.gateway import Chosen, GatewayUse

__all__ = ["Plan", "make_plan", "plan_verification"]


@dataclass(frozen=True)
class Plan:
    """What will run. Made without side effects: it can be printed, refused, or carried out."""

    task: Task
    digest: str
    roles: Mapping[str, Role]
    agents: Mapping[str, Loaded]
    """By the name the user gave the agent."""
    steps: Sequence[DriveStep]
    driver: Loaded
    adapter: Loaded
    sandbox: Loaded
    capabilities: frozenset[str]
    routes: Mapping[str, Chosen]
    """By role, how it reaches its model; nothing for a role that needs none."""
    verifiers: Mapping[str, Loaded]
    """By method."""
    isolation: str | None
    scenes: Sequence[Scene] = ()
    """As they were written; `steps` is what they come to."""
    oracles: frozenset[str] = frozenset()
    """Roles that may read the reference solution."""
    driver_params: Mapping[str, Any] = field(default_factory=dict)
    user: BaseUser | None = None
    """Who decides the prompts instead of the driver."""
    notices: tuple[str, ...] = ()
    features: FeaturePlans = field(default_factory=FeaturePlans)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gateways(self) -> tuple[Loaded, ...]:
        """Of the models the roles use."""
        return tuple({chosen.gateway.name: chosen.gateway for chosen in self.routes.values()}.values())

    def image_request(self, config: RolloutConfig) -> ImageRequest:
        env = self.task.environment
        none = not (env.image or env.dockerfile or env.compose)
        return _image_request(self.task, config, self.features.image if none else None)

    @property
    def homes(self) -> dict[str, str]:
        """Role to the name of its own folder below the user's home; the others are at home there itself."""
        return self.features.homes

    def layers(self) -> tuple[Layer, ...]:
        by_key = {layer.key: layer for agent in self.agents.values() for layer in agent.spec.layers}
        by_key |= {layer.key: layer for layer in self.features.layers}
        return tuple(by_key.values())

    def runtimes(self) -> tuple[Runtime, ...]:
        specs = [agent.spec for agent in self.agents.values()]
        wanted = [r for s in specs for r in s.runtimes] + [
            r for s in specs for layer in s.layers for r in layer.runtimes
        ]
        wanted += self.features.runtimes
        return tuple(dict.fromkeys(wanted))

    def plugins(self) -> list[dict[str, str]]:
        """Every plugin this rollout uses, as results record it."""
        return list(self._stamps)

    @cached_property
    def _stamps(self) -> list[dict[str, str]]:
        agents = [*self.agents.values(), *(a.inner for a in self.agents.values() if a.inner)]
        used: list[LoadedPlugin] = [
            self.adapter,
            self.sandbox,
            self.driver,
            *self.gateways,
            *self.verifiers.values(),
            *agents,
        ]
        used += self.features.plugins
        stamps = {(p.kind, p.name): p.stamp() for p in used}
        return [stamps[key] for key in sorted(stamps)]


def _image_request(task: Task, config: RolloutConfig, image: str | None = None) -> ImageRequest:
    """Return what the task's box is made from; `image` is for a task that names none."""
    env = task.environment
    return ImageRequest(
        context=context_of(env, config.context_root),
        dockerfile=env.dockerfile,
        image=env.image or image,
        compose=env.compose,
        timeout=env.build_timeout,
        allow_substitute=config.allow_substitute or env.allow_substitute,
        base_override=config.base_image_override,
    )


def make_plan(
    config: RolloutConfig,
    plugins: Registry,
    env: Mapping[str, str],
    *,
    loaded: tuple[Task, str] | None = None,
    elsewhere: bool = False,
    others: Sequence[str] = (),
) -> Plan:
    """Load what is named and refuse what cannot work, naming the missing capability and who has it.

    `loaded`: the task and its digest, for a caller that plans it more than once. `elsewhere`: it will run on another
    machine. `others`: agents of the job's other arms, for which the job's model and options may be meant.
    """
    task, digest = loaded or (load_task(config.task_path), None)
    refuse_host_vars(task, config.allow_env, env)
    refuse_unheard(config)
    unnamed: list[str] = []
    user = task_user(task, config, plugins)
    scenes = task_scenes(task, config) or config.effective_scenes(lambda: default_agent(plugins, unnamed))
    compile_scenes_to_steps(scenes)  # refuses scenes that cannot be played, before anybody looks at their roles
    roles = _roles(scenes, config)
    agents = {role.agent: find_agent(role.agent, plugins) for role in roles.values()}
    written = tuple(scenes)
    sandbox, passed_over = take_sandbox(config.sandbox, plugins, env, elsewhere=elsewhere)
    capabilities = sandbox_capabilities(sandbox)
    digest = digest or task_digest(task.path)
    view = RolloutPlanView(
        task=task,
        digest=digest,
        scenes=scenes,
        roles=roles,
        agents=agents,
        sandbox=sandbox,
        capabilities=capabilities,
        settings=settings_view(config),
        image=_image_request(task, config),
        env=env,
        registry=plugins,
    )
    features = plan_features(view)
    scenes = list(features.scenes(scenes))
    steps, roles = compile_scenes_to_steps(scenes), _roles(scenes, config)
    also = [find_agent(name, plugins) for name in others]
    if any(agent.spec.takes_model is not False for agent in also):
        roles = without_model_of_others(roles, agents, config.model)
    refuse_options(roles, agents, config.agent_options, config.agent_env, env, also)
    roles, defaults = with_models(roles, agents, own_login=features.auth)
    isolation = choose(task, task.verifier, capabilities, config.isolation, plugins)[0] if config.verify else None
    wishes = {c: why for c, why in wanted_capabilities(task).items() if c not in capabilities}
    notices = [
        *([config.dataset["warning"]] if config.dataset and "warning" in config.dataset else []),
        *(f"no agent was named: '{name}' is taken (-a names another)" for name in unnamed),
        *passed_over,
        *defaults,
        *task.notices,
        *features.notices,
        *filter(None, [drift(task.path, digest)]),
        *(f"sandbox '{sandbox.name}' lacks {c}, which the task would like ({why})" for c, why in wishes.items()),
    ]
    substitute = config.allow_substitute or task.environment.allow_substitute
    refuse_missing(task, sandbox, capabilities, plugins, isolation=isolation, substitute=substitute)
    offered = features.mcp_servers
    for name, agent in agents.items():
        refuse_agent(name, agent, task, sandbox, capabilities, offered=offered)
        if config.usage_tracking == "required":
            refuse_uncounted(name, agent, native=name in features.auth)
    oracles = oracle_roles(scenes) if task.solution else frozenset()
    notices += check_access(roles, oracles, config.sandbox_locked_paths, sandbox, capabilities)
    own = compile_scenes_to_steps(config.scenes)
    told = len(own) > 1 or any(step.prompt is not None or len(step.roles) > 1 for step in own)
    if user is not None and (told or config.prompts or config.driver):
        raise ConfigurationError(
            "a simulated user decides the prompts itself; scenes of several turns or roles, prompts or a driver cannot "
            "be given beside it.",
            remedy="Scene.single(agent=…, model=…) says whom it talks to.",
        )
    refuse_no_user(user)
    word = config.driver or task_driver(task, config)
    installed = user_driver if user is not None else default_driver
    driver = plugins.get("driver", driver_word(word)[0]) if word else installed(plugins)
    params = driver_params(word or driver.name, driver.spec.params, config.driver_params)
    if user is not None:
        params |= {"max_rounds": config.max_user_rounds, "oracle_access": config.oracle_access}
    driver.spec.refuse({"steps": tuple(steps), **params})
    if lacking := sorted(driver.spec.needs - capabilities):
        raise CapabilityMissing(
            f"driver '{driver.name}' needs {', '.join(lacking)}, which sandbox '{sandbox.name}' does not have."
        )
    settings = [task.verifier, *(step.verifier for step in task.steps)]
    verifiers = {s.method: find_verifier(s.method, plugins) for s in settings} if config.verify else {}
    use = gateway_use(config, task.path.name)
    refuse_judge(settings, verifiers, plugins, env, use)
    refuse_speechless(user, roles, plugins, env, use)
    try:
        routes = _routes(roles, agents, plugins, env, use, own_login=features.auth)
    except ConfigurationError as error:
        if unnamed:
            raise ConfigurationError(
                f"no agent was named, and '{unnamed[0]}' cannot be taken: {error.message}",
                remedy=" ".join(filter(None, ["Add -a NAME (bench agent list), or:", error.remedy])),
            ) from error
        raise
    plan = Plan(
        task=task,
        digest=digest,
        roles=roles,
        agents=agents,
        steps=steps,
        driver=driver,
        adapter=adapter_of(task.path),
        sandbox=sandbox,
        capabilities=capabilities,
        routes=routes,
        verifiers=verifiers,
        isolation=isolation,
        scenes=written,
        oracles=oracles,
        driver_params=params,
        user=user,
        notices=tuple(notices),
        features=features,
    )
    sandbox.spec.refuse(config.sandbox_options, env, plan.image_request(config))
    return plan


def plan_verification(config: RolloutConfig, plugins: Registry, env: Mapping[str, str], saved: Path) -> Plan:
    """Plan to verify what an agent left in the rollout at `saved`: no agent is looked for, and no key is asked."""
    task = load_task(config.task_path)
    refuse_host_vars(task, config.allow_env, env)
    sandbox, _ = take_sandbox(config.sandbox, plugins, env)
    capabilities = sandbox_capabilities(sandbox)
    settings = [task.verifier, *(step.verifier for step in task.steps)]
    digest, scenes = task_digest(task.path), config.effective_scenes(lambda: "")
    roles = _roles(scenes, config)
    view = RolloutPlanView(
        task=task,
        digest=digest,
        scenes=scenes,
        roles=roles,
        agents={},
        sandbox=sandbox,
        capabilities=capabilities,
        settings=settings_view(config),
        image=_image_request(task, config),
        env=env,
        registry=plugins,
    )
    return Plan(
        features=plan_features(view, saved),
        task=task,
        digest=digest,
        roles=roles,
        agents={},
        steps=(),
        driver=default_driver(plugins),
        adapter=adapter_of(task.path),
        sandbox=sandbox,
        capabilities=capabilities,
        routes={},
        verifiers={s.method: find_verifier(s.method, plugins) for s in settings},
        isolation=choose(task, task.verifier, capabilities, config.isolation, plugins)[0],
    )


def _roles(scenes: Sequence[Any], config: RolloutConfig) -> dict[str, Role]:
    """Roles by name over all scenes; the same name in two scenes must mean the same."""
    roles: dict[str, Role] = {}
    for scene in scenes:
        for role in scene.roles:
            if roles.setdefault(role.name, role) != role:
                raise ConfigurationError(
                    f"role '{role.name}' is defined differently in two scenes.",
                    remedy="Give the second one another name.",
                )
    return roles


def _routes(
    roles: Mapping[str, Role],
    agents: Mapping[str, Loaded],
    plugins: Registry,
    env: Mapping[str, str],
    use: GatewayUse,
    *,
    own_login: Container[str],
) -> dict[str, Chosen]:
    """How each role reaches its model; a missing model, key or way is said now and not in the middle of a fleet."""
    found: dict[str, Chosen] = {}
    for role in roles.values():
        spec = agents[role.agent].spec
        if role.agent in own_login:
            continue
        if spec.wires and role.model is None:
            raise ConfigurationError(f"agent '{role.agent}' needs a model.", remedy="Add -m MODEL.")
        if spec.wires and role.model:
            from benchflow_core.gateway import Models

            also = [name for option in spec.auth if not option.native for name in option.env]
            found[role.name] = Models(plugins, env, Path).plan(role.model, spec.wires, also=also, use=use)
    return found
