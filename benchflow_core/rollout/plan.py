"""The plan of a rollout: everything is named, loaded and checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchflow_core.acp.command import command_agent
from benchflow_core.contracts.common import Capability, Layer, Runtime
from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.contracts.tasks import Task, VerifierSettings
from benchflow_core.drive.scenes import DriveStep, Role, compile_scenes_to_steps
from benchflow_core.errors import CapabilityMissing, ConfigurationError
from benchflow_core.gateway import Models
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.rollout.config import RolloutConfig
from benchflow_core.rollout.task_scenes import task_scenes
from benchflow_core.task import (
    adapter_of,
    load_task,
    requested_host_vars,
    required_capabilities,
    task_digest,
    wanted_capabilities,
)
from benchflow_core.verify import policies

__all__ = ["Plan", "choose_sandbox", "find_agent", "make_plan", "sandbox_capabilities"]

COMMAND_PREFIX = "cmd:"


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
    gateways: tuple[Loaded, ...]
    """Of the models the roles use."""
    verifiers: Mapping[str, Loaded]
    """By method."""
    isolation: str | None
    notices: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def image_request(self, config: RolloutConfig) -> ImageRequest:
        env = self.task.environment
        return ImageRequest(
            context=env.context,
            dockerfile=env.dockerfile,
            image=env.image,
            compose=env.compose,
            timeout=env.build_timeout,
            allow_substitute=config.allow_substitute or env.allow_substitute,
            base_override=config.base_image_override,
        )

    def layers(self) -> tuple[Layer, ...]:
        by_key = {layer.key: layer for agent in self.agents.values() for layer in agent.spec.layers}
        return tuple(by_key.values())

    def runtimes(self) -> tuple[Runtime, ...]:
        specs = [agent.spec for agent in self.agents.values()]
        wanted = [r for s in specs for r in s.runtimes] + [
            r for s in specs for layer in s.layers for r in layer.runtimes
        ]
        return tuple(dict.fromkeys(wanted))

    def plugins(self) -> list[dict[str, str]]:
        """Every plugin this rollout uses, as results record it."""
        agents = [*self.agents.values(), *(a.inner for a in self.agents.values() if a.inner)]
        used = [self.adapter, self.sandbox, self.driver, *self.gateways, *self.verifiers.values(), *agents]
        stamps = {(p.kind, p.name): p.stamp() for p in used}
        return [stamps[key] for key in sorted(stamps)]


def make_plan(config: RolloutConfig, plugins: Registry, env: Mapping[str, str]) -> Plan:
    """Load what is named and refuse what cannot work, naming the missing capability and who has it."""
    task = load_task(config.task_path)
    _refuse_host_vars(task, config.allow_env, env)
    scenes = task_scenes(task, config) or config.effective_scenes(lambda: _default_agent(plugins))
    steps = compile_scenes_to_steps(scenes)
    roles = _roles(scenes, config)
    agents = {role.agent: find_agent(role.agent, plugins) for role in roles.values()}
    sandbox = plugins.get("sandbox", config.sandbox) if config.sandbox else choose_sandbox(plugins)
    capabilities = sandbox_capabilities(sandbox)
    isolation = _isolation(config, task, task.verifier, capabilities) if config.verify else None
    wishes = {c: why for c, why in wanted_capabilities(task).items() if c not in capabilities}
    notices = [
        *task.notices,
        *(f"sandbox '{sandbox.name}' lacks {c}, which the task would like ({why})" for c, why in wishes.items()),
    ]
    substitute = config.allow_substitute or task.environment.allow_substitute
    _refuse_missing(task, sandbox, capabilities, plugins, isolation=isolation, substitute=substitute)
    for name, agent in agents.items():
        _refuse_agent(name, agent, task, sandbox, capabilities)
    settings = [task.verifier, *(step.verifier for step in task.steps)]
    verifiers = {s.method: _find_verifier(s.method, plugins) for s in settings} if config.verify else {}
    return Plan(
        task=task,
        digest=task_digest(task.path),
        roles=roles,
        agents=agents,
        steps=steps,
        driver=plugins.get("driver", config.driver) if config.driver else _default_driver(plugins),
        adapter=adapter_of(task.path),
        sandbox=sandbox,
        capabilities=capabilities,
        gateways=_gateways(roles, agents, plugins, env),
        verifiers=verifiers,
        isolation=isolation,
        notices=tuple(notices),
    )


def find_agent(name: str, plugins: Registry) -> Loaded:
    """An installed agent by its name, or any ACP command given as `cmd:…`. Nothing else is ever run as a command."""
    if name.startswith(COMMAND_PREFIX):
        command = name.removeprefix(COMMAND_PREFIX)
        return Loaded(kind="agent", name=name, distribution="", version="", spec=command_agent(command), aliases=())
    return plugins.get("agent", name)


def sandbox_capabilities(sandbox: Loaded) -> frozenset[str]:
    declared = sandbox.spec.capabilities
    return frozenset(declared() if callable(declared) else declared)


def choose_sandbox(plugins: Registry) -> Loaded:
    """The best-ranked sandbox that answers here."""
    ranked = sorted(
        (s for s in plugins.all("sandbox") if s.spec.default_rank is not None), key=lambda s: s.spec.default_rank
    )
    refusals = []
    for sandbox in ranked:
        found = sandbox.spec.available()
        if found.ok:
            return sandbox
        refusals.append(f"{sandbox.name}: {found.reason}")
    said = "; ".join(refusals) or "none is installed"
    raise ConfigurationError(f"no sandbox can be used here ({said}).", remedy="Run: bench plugins doctor")


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


def _default_agent(plugins: Registry) -> str:
    ranked = sorted(
        (a for a in plugins.all("agent") if a.spec.default_rank is not None), key=lambda a: a.spec.default_rank
    )
    if not ranked:
        raise ConfigurationError(
            "no agent was named.", remedy="Add -a NAME; bench agent list shows the installed ones."
        )
    return ranked[0].name


def _default_driver(plugins: Registry) -> Loaded:
    defaults = [d for d in plugins.all("driver") if d.spec.default]
    if len(defaults) != 1:
        names = ", ".join(d.name for d in defaults) or "none"
        raise ConfigurationError(
            f"one default driver is expected, found: {names}.", remedy="Run: bench plugins list --kind driver"
        )
    return defaults[0]


def _gateways(
    roles: Mapping[str, Role], agents: Mapping[str, Loaded], plugins: Registry, env: Mapping[str, str]
) -> tuple[Loaded, ...]:
    """How each role reaches its model; a missing model, key or way is said now and not in the middle of a fleet."""
    found: dict[str, Loaded] = {}
    for role in roles.values():
        spec = agents[role.agent].spec
        model = role.model or spec.default_model
        if spec.wires and model is None:
            raise ConfigurationError(f"agent '{role.agent}' needs a model.", remedy="Add -m MODEL.")
        if spec.wires and model:
            also = [name for option in spec.auth for name in option.env]
            gateway = Models(plugins, env, Path).plan(model, spec.wires, also=also).gateway
            found[gateway.name] = gateway
    return tuple(found.values())


def _find_verifier(method: str, plugins: Registry) -> Loaded:
    found = [v for v in plugins.all("verifier") if method in v.spec.methods]
    if not found:
        known = sorted(m for v in plugins.all("verifier") for m in v.spec.methods)
        raise ConfigurationError(
            f"no installed verifier handles '{method}'.",
            remedy=f"Installed: {', '.join(known) or 'none'}. Try: pip install benchflow-verifier-{method}",
        )
    return found[0]


def _refuse_host_vars(task: Task, allowed: Sequence[str], env: Mapping[str, str]) -> None:
    """A task reads no variable of the host's that the user did not name. One that is set is refused, not left out."""
    asked = [v.name for v in requested_host_vars(task) if v.name not in allowed and (v.required or v.name in env)]
    if asked:
        flags = " ".join(f"--allow-env {name}" for name in asked)
        raise ConfigurationError(
            f"task '{task.name}' asks for host variables: {', '.join(asked)}.", remedy=f"Allow them with {flags}."
        )


def _refuse_missing(
    task: Task,
    sandbox: Loaded,
    capabilities: frozenset[str],
    plugins: Registry,
    *,
    isolation: str | None,
    substitute: bool,
) -> None:
    missing = {c: why for c, why in required_capabilities(task, isolation=isolation).items() if c not in capabilities}
    if substitute:
        for image in (Capability.IMAGE_BUILD, Capability.IMAGE_PREBUILT):
            missing.pop(image, None)
    if not missing:
        return
    capability, why = next(iter(missing.items()))
    having = [s.name for s in plugins.all("sandbox") if capability in sandbox_capabilities(s)]
    advice = f"Sandboxes that have it: {', '.join(having)}." if having else "No installed sandbox has it."
    if capability in (Capability.IMAGE_BUILD, Capability.IMAGE_PREBUILT):
        advice += " Or add --allow-substitute to run on the host's own files, marked in the result."
    raise CapabilityMissing(
        f"task '{task.name}' needs '{capability}' ({why}), which sandbox '{sandbox.name}' does not have.",
        remedy=advice,
        details={"missing": sorted(missing), "sandboxes": having},
    )


def _refuse_agent(name: str, agent: Loaded, task: Task, sandbox: Loaded, capabilities: frozenset[str]) -> None:
    missing = sorted(agent.spec.needs - capabilities)
    if missing:
        raise CapabilityMissing(
            f"agent '{name}' needs {', '.join(missing)}, which sandbox '{sandbox.name}' does not have."
        )
    if agent.spec.prepare is None and agent.spec.connect is None:
        raise ConfigurationError(f"agent '{name}' only wraps others.", remedy=f"Name one: -a {name}/<agent>")
    if task.environment.mcp_servers and agent.spec.purpose == "normal" and not agent.spec.mcp:
        raise CapabilityMissing(f"task '{task.name}' offers MCP servers, which agent '{name}' cannot use.")


def _isolation(config: RolloutConfig, task: Task, settings: VerifierSettings, capabilities: frozenset[str]) -> str:
    allowed = policies(task, settings, capabilities)
    if config.isolation is None:
        return allowed[0]
    if config.isolation not in allowed:
        raise CapabilityMissing(
            f"verifier isolation '{config.isolation}' cannot be had for task '{task.name}' here.",
            remedy=f"Possible: {', '.join(allowed)}.",
        )
    return config.isolation
