"""What cannot work is refused before anything starts, with what is missing and who has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.common import Capability, McpServer
from benchflow_core.contracts.drivers import BaseUser
from benchflow_core.contracts.tasks import Task, VerifierSettings
from benchflow_core.errors import CapabilityMissing, ConfigurationError
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.plugins.dotted import resolve
from benchflow_core.rollout.choose import sandbox_capabilities
from benchflow_core.task import requested_host_vars, required_capabilities

if TYPE_CHECKING:
    from benchflow_core.contracts.agents import AgentOption
    from benchflow_core.contracts.scenes import Role
    from benchflow_core.gateway import GatewayUse
    from benchflow_core.settings.models import RolloutConfig

__all__ = [
    "refuse_agent",
    "refuse_host_vars",
    "refuse_judge",
    "refuse_missing",
    "refuse_no_user",
    "refuse_options",
    "refuse_speechless",
    "refuse_uncounted",
    "refuse_unheard",
]


def refuse_judge(
    settings: Sequence[VerifierSettings],
    verifiers: Mapping[str, Loaded],
    plugins: Registry,
    env: Mapping[str, str],
    use: GatewayUse,
) -> None:
    """A judge without a key would be found out after every agent has done its work."""
    for one in settings:
        if one.method in verifiers and verifiers[one.method].spec.needs_model and one.params.get("model"):
            from benchflow_core.gateway import Models

            Models(plugins, env, Path).plan(one.params["model"], use=use)


def refuse_no_user(user: Any) -> None:
    """Refuse what was given as a simulated user and cannot be one."""
    if user is not None and not isinstance(user, BaseUser):
        remedy = "Wrap a function in FunctionUser(…)." if callable(user) else "Subclass BaseUser."
        raise ConfigurationError(f"user is {user!r}, which is no BaseUser.", remedy=remedy)


def refuse_speechless(
    user: BaseUser | None, roles: Mapping[str, Role], plugins: Registry, env: Mapping[str, str], use: GatewayUse
) -> None:
    """A simulated user that is a model, and none can be reached."""
    if user is None or not user.needs_model:
        return
    model = user.model_name or next(iter(roles.values())).model
    if model is None:
        raise ConfigurationError("the simulated user needs a model.", remedy="Name one: ModelUser(model=…).")
    from benchflow_core.gateway import Models

    Models(plugins, env, Path).plan(model, use=use)


def refuse_host_vars(task: Task, allowed: Sequence[str], env: Mapping[str, str]) -> None:
    """A task reads no variable of the host's that the user did not name. One that is set is refused, not left out."""
    asked = [v.name for v in requested_host_vars(task) if v.name not in allowed and (v.required or v.name in env)]
    if asked:
        flags = " ".join(f"--allow-env {name}" for name in asked)
        raise ConfigurationError(
            f"task '{task.name}' asks for host variables: {', '.join(asked)}.", remedy=f"Allow them with {flags}."
        )
    unset = [v.name for v in requested_host_vars(task) if v.required and v.name not in env]
    if unset:
        raise ConfigurationError(
            f"task '{task.name}' needs host variables that are not set: {', '.join(unset)}.", remedy="Set them first."
        )


def refuse_missing(
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


def refuse_agent(
    name: str, agent: Loaded, task: Task, sandbox: Loaded, capabilities: frozenset[str], *, offered: Sequence[McpServer]
) -> None:
    missing = sorted(agent.spec.needs - capabilities)
    if missing:
        raise CapabilityMissing(
            f"agent '{name}' needs {', '.join(missing)}, which sandbox '{sandbox.name}' does not have."
        )
    if agent.spec.prepare is None and agent.spec.connect is None:
        if agent.spec.wrap is None:
            raise ConfigurationError(
                f"agent '{name}' is named by what it runs.", remedy=f"{name}: {agent.spec.summary}"
            )
        raise ConfigurationError(f"agent '{name}' only wraps others.", remedy=f"Name one: -a {name}/<agent>")
    if agent.spec.connect is None:
        resolve(agent.spec.session, agent.who)
    if task.prior_conversation is not None and agent.spec.purpose == "normal":
        raise CapabilityMissing(
            f"task '{task.name}' goes on from an earlier conversation ({task.prior_conversation.name}), which agent "
            f"'{name}' cannot be given."
        )
    if not offered and not task.environment.mcp_servers:
        return
    if agent.spec.purpose == "normal" and not agent.spec.mcp:
        raise CapabilityMissing(f"task '{task.name}' offers MCP servers, which agent '{name}' cannot use.")


def refuse_options(
    roles: Mapping[str, Role],
    agents: Mapping[str, Loaded],
    given: Mapping[str, str],
    agent_env: Mapping[str, str],
    env: Mapping[str, str],
    others: Sequence[Loaded] = (),
) -> None:
    """Refuse what an agent does not take, and what it needs and was not given.

    `given` and `agent_env` are for every role; an option may be meant for `others`, the agents of a job's other arms.
    """
    for role in roles.values():
        declared = agents[role.agent].spec.options
        if role.model and agents[role.agent].spec.takes_model is False:
            raise ConfigurationError(
                f"agent '{role.agent}' takes no model, and '{role.model}' was given.",
                remedy="Leave the model out, or name an agent that asks one.",
            )
        if declared is None:
            continue
        for name in role.options.keys() - declared.keys():
            _refuse_option(name, {role.agent: declared})
        for name, value in {**given, **role.options}.items():
            _refuse_value(role.agent, name, value, declared)
        present = {**given, **role.options}.keys() | {**env, **agent_env, **role.env}.keys()
        for name, option in declared.items():
            if option.required and not {name, option.env} & present:
                raise ConfigurationError(
                    f"agent '{role.agent}' needs the option '{name}': {option.help}",
                    remedy=f"Add --agent-option {name}=… to the command, or options to the role.",
                )
    known = {role.agent: agents[role.agent].spec.options for role in roles.values()}
    known |= {agent.name: agent.spec.options for agent in others}
    for name in given:
        if not any(options is None or name in options for options in known.values()):
            _refuse_option(name, known)


def _refuse_option(name: str, known: Mapping[str, Mapping[str, AgentOption] | None]) -> None:
    taken = "; ".join(f"{n}: {one.help}" for options in known.values() for n, one in (options or {}).items())
    raise ConfigurationError(
        f"agent {' and '.join(repr(agent) for agent in known)} takes no option '{name}'.",
        remedy=f"It takes {taken}" if taken else "It takes none.",
    )


def _refuse_value(agent: str, name: str, value: str, declared: Mapping[str, AgentOption]) -> None:
    try:
        if name in declared:
            declared[name].parse(value)
    except ValueError as error:
        raise ConfigurationError(
            f"agent '{agent}' cannot take {name}={value}: {error}.", remedy=declared[name].help
        ) from None


def refuse_uncounted(name: str, agent: Loaded, *, native: bool) -> None:
    if agent.spec.purpose == "normal" and (native or not agent.spec.wires):
        raise CapabilityMissing(
            f"--usage-tracking required: agent '{name}' reaches its model without a gateway, so nobody counts tokens.",
            remedy="Use --usage-tracking auto: what the agent itself reports is recorded.",
        )


def refuse_unheard(config: RolloutConfig) -> None:
    """The short form beside scenes: nobody would hear of it."""
    if config.scenes and (said := [name for name in ("agent", "model", "prompts") if getattr(config, name)]):
        raise ConfigurationError(
            f"'{said[0]}' would do nothing: the scenes name their agents, models and prompts.", remedy="Leave it out."
        )
