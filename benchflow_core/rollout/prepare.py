"""What has to be settled between the plan and a box that an agent may enter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.sandboxes import StartRequest
from benchflow_core.errors import BenchflowError, ConfigurationError, InfrastructureError, TaskError
from benchflow_core.results.files import host_exhausted
from benchflow_core.results.redact import secret_names
from benchflow_core.rollout import access, boxes
from benchflow_core.rollout.access import limited_roles
from benchflow_core.task import resolve_env

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = [
    "agent_limit",
    "allowed_host_vars",
    "disappeared",
    "hide_secrets",
    "ready_agent",
    "ready_box",
    "solution_env",
    "start_request",
    "typed",
    "verifier_env",
]


def allowed_host_vars(rollout: Rollout) -> dict[str, str]:
    """The host variables that the user lets the task read; secrets from now on."""
    env = rollout.host.env
    granted = {name: env[name] for name in rollout.config.allow_env if name in env}
    rollout.host.redactor.add(granted.values())
    return granted


def hide_secrets(rollout: Rollout) -> None:
    """Secrets given to agents are hidden in everything that is written, as those of the environment are."""
    for env in (rollout.config.agent_env, *(role.env for role in rollout.plan.roles.values())):
        rollout.host.redactor.add(env[name] for name in secret_names(env))


def start_request(rollout: Rollout) -> StartRequest:
    env, plan = rollout.plan.task.environment, rollout.plan
    # Other drivers than the one that is used by itself may narrow what a role sees as they go.
    limited = limited_roles(plan.roles, plan.oracles, rollout.config.sandbox_locked_paths)
    views = bool(limited) or not plan.driver.spec.default
    return StartRequest(
        name=f"{rollout.job}/{rollout.name}",
        env=resolve_env(env.env, rollout.host_vars, where="environment.env"),
        workdir=env.workdir,
        resources=env.resources,
        network=env.network,
        labels={"job": rollout.job, "rollout": rollout.name, "purpose": "agent"},
        access_views=views,
    )


async def ready_box(rollout: Rollout) -> None:
    """Folders, the instruction, the task's own set-up, the health gate."""
    sandbox, task = rollout.sandbox, rollout.plan.task
    for notice in (*rollout.image.notices, *sandbox.info.notices):
        rollout.notice(notice)
    rollout.result.image_fidelity = rollout.image.fidelity
    await sandbox.upload(rollout.host.log_folders, "/logs")
    if task.environment.upload_context and rollout.context:
        await sandbox.upload(rollout.context, rollout.workdir)
    if task.instruction:
        await sandbox.upload(rollout.host.text_file(task.instruction), "/instruction.md", mode=0o644)
    for source, target in rollout.config.uploads.items():
        if not Path(source).exists():
            raise ConfigurationError(f"upload '{source}' does not exist.")
        await sandbox.upload(Path(source), target)
    for command in task.environment.setup:
        await boxes.run_setup(sandbox, command, {})
    if task.environment.setup:
        await _take_as_origin(rollout)
    rollout.result.sandbox_id = rollout.sandbox.info.id
    await rollout.features.enter("box", rollout.box_view)
    if task.environment.healthcheck:
        await boxes.wait_healthy(rollout.sandbox, task.environment.healthcheck)


async def _take_as_origin(rollout: Rollout) -> None:
    """What the task's own commands changed is the task's, not the agent's: the box goes on from a snapshot of it.

    Where they left something running, the box stays as it is, and `fresh` takes their changes for the agent's.
    """
    needed = {Capability.SNAPSHOT, Capability.CHANGES}
    if not needed <= rollout.plan.capabilities or rollout.plan.task.environment.compose:
        return
    if not await rollout.sandbox.processes():
        await rollout.go_on_from(await rollout.keeper.origin())


async def ready_agent(rollout: Rollout) -> None:
    """The agent's user and home, the caller's hooks, and the network as the agent's phase wants it."""
    sandbox, task = rollout.sandbox, rollout.plan.task
    user = rollout.config.sandbox_user or (rollout.step.agent_user if rollout.step else None) or task.agent_user
    rollout.agent_user = user or rollout.image.user
    if rollout.config.sandbox_user:
        await boxes.ensure_user(sandbox, rollout.config.sandbox_user, rollout.workdir)
    rollout.agent_home = await boxes.user_home(sandbox, rollout.agent_user)
    await rollout.features.enter("agent", rollout.box_view)
    await access.try_views(rollout)
    for hook in rollout.config.pre_agent_hooks:
        if hook not in rollout.plan.features.taken_hooks:
            await hook(sandbox)
    policy = (rollout.step.agent_network if rollout.step else None) or task.agent_network
    if policy is not None and policy != task.environment.network:
        await sandbox.set_network(policy)


def agent_limit(rollout: Rollout) -> float | None:
    """Seconds for the agent in this step: the caller's, else the step's, else the task's."""
    if rollout.config.timeout is not None:
        return rollout.config.timeout
    own = rollout.step.agent_timeout if rollout.step else None
    return own if own is not None else rollout.plan.task.agent_timeout


def solution_env(rollout: Rollout) -> dict[str, str]:
    solution = (rollout.step.solution if rollout.step else None) or rollout.plan.task.solution
    return resolve_env(solution.env, rollout.host_vars, where="solution.env") if solution else {}


def disappeared(rollout: Rollout) -> TaskError:
    task = rollout.plan.task
    return TaskError(f"the folder of task '{task.name}' disappeared during the run: {task.path}.")


def typed(rollout: Rollout, error: OSError) -> BenchflowError:
    """A failure of the host's own files, told apart: the task went away, or the host is in trouble."""
    if not rollout.plan.task.path.is_dir():
        return disappeared(rollout)
    if (ours := host_exhausted(error, str(error.filename or rollout.host.cache))) is not None:
        return ours
    said = error.strerror or str(error) or type(error).__name__
    late = isinstance(error, TimeoutError)  # of a plugin's, which may be in time when it is tried again
    return InfrastructureError(f"{said}: {error.filename or ''}".rstrip(": ") + ".", retryable=late)


def verifier_env(rollout: Rollout) -> dict[str, str]:
    own = resolve_env(rollout.settings().env, rollout.host_vars, where="verifier.env")
    return {**rollout.plan.features.env, **own}
