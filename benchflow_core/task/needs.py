"""What a task asks of a sandbox, as capabilities: a plan is checked against it before anything starts."""

from __future__ import annotations

from collections.abc import Iterator

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.sandboxes import NetworkPolicy
from benchflow_core.contracts.tasks import Task, TaskEnvironment, VerifierSettings

__all__ = ["required_capabilities", "wanted_capabilities"]

_ROOT = (None, "", "root", "0")
_MODE = {"none": Capability.NETWORK_NONE, "allowlist": Capability.NETWORK_ALLOWLIST}


def required_capabilities(task: Task, *, isolation: str | None = None) -> dict[str, str]:
    """Capability to why: without any one of these the task would not be the task, so the plan is refused.

    `isolation` is the verifier policy of the plan: only under `shared` does a verifier with another network than the
    agent's need the policy of a running box changed.
    """
    needs: dict[str, str] = {}
    for capability, why in _needs(task, isolation):
        needs.setdefault(str(capability), why)
    return needs


def wanted_capabilities(task: Task) -> dict[str, str]:
    """Capability to why: what the task asks for and can do without. A sandbox that lacks it earns a notice."""
    wants: dict[str, str] = {}
    limits = task.environment.resources
    if limits.cpus is not None:
        wants[Capability.LIMIT_CPU] = f"cpus = {limits.cpus:g}"
    if limits.memory_mb is not None:
        wants[Capability.LIMIT_MEMORY] = f"memory_mb = {limits.memory_mb}"
    if limits.storage_mb is not None:
        wants[Capability.LIMIT_STORAGE] = f"storage_mb = {limits.storage_mb}"
    if limits.pids is not None:
        wants[Capability.LIMIT_PIDS] = f"pids = {limits.pids}"
    if task.environment.network.mode == "public":
        wants[Capability.NETWORK_PUBLIC] = "network is public"
    return {str(capability): why for capability, why in wants.items()}


def _needs(task: Task, isolation: str | None) -> Iterator[tuple[str, str]]:
    yield from _box_needs(task.environment, "environment")
    yield from _phase_network(task, isolation)
    yield from _users(task)
    yield from _services(task)
    for name, settings in _verifications(task):
        if settings.environment is not None:
            yield from _box_needs(settings.environment, f"{name}.environment")


def _box_needs(box: TaskEnvironment, where: str) -> Iterator[tuple[str, str]]:
    if box.os == "windows":
        yield Capability.WINDOWS, f"{where}: os is windows"
    if box.resources.gpus > 0:
        yield Capability.GPU, f"{where}: gpus = {box.resources.gpus}"
    if box.resources.tpu is not None:
        yield Capability.TPU, f"{where}: tpu {box.resources.tpu.get('type', '')}".rstrip()
    if box.compose is not None:
        yield Capability.COMPOSE, f"{where}: {box.compose.name}"
    if not box.allow_substitute:
        if box.image is not None:
            yield Capability.IMAGE_PREBUILT, f"{where}: image {box.image}"
        elif box.dockerfile is not None:
            yield Capability.IMAGE_BUILD, f"{where}: {box.dockerfile.name}"
    if box.network.mode in _MODE:
        yield _MODE[box.network.mode], f"{where}: network is {box.network.mode}"


def _phase_network(task: Task, isolation: str | None) -> Iterator[tuple[str, str]]:
    base = task.environment.network
    agents = [("agent", task.agent_network), *((f"steps.{s.name}.agent", s.agent_network) for s in task.steps)]
    for where, policy in agents:
        if policy is not None and policy != base:
            yield from _mode(policy, where)
            yield Capability.NETWORK_DYNAMIC, f"{where}: network is {policy.mode}, the environment's is {base.mode}"
    for where, settings in _verifications(task):
        own = settings.environment.network if settings.environment is not None else base
        if settings.network is None or settings.network == own:
            continue
        yield from _mode(settings.network, where)
        if settings.isolation == "shared" or (isolation == "shared" and settings.isolation != "separate"):
            yield Capability.NETWORK_DYNAMIC, f"{where}: network is {settings.network.mode}, the box's is {own.mode}"


def _mode(policy: NetworkPolicy, where: str) -> Iterator[tuple[str, str]]:
    if policy.mode in _MODE:
        yield _MODE[policy.mode], f"{where}: network is {policy.mode}"


def _users(task: Task) -> Iterator[tuple[str, str]]:
    named = [("agent.user", task.agent_user), *((f"steps.{s.name}.agent.user", s.agent_user) for s in task.steps)]
    named += [(f"environment.setup[{i}].user", setup.user) for i, setup in enumerate(task.environment.setup)]
    for where, settings in _verifications(task):
        named.append((f"{where}.user", settings.user))
        named += [(f"{where}.collect[{i}].user", hook.user) for i, hook in enumerate(settings.collect)]
    for where, user in named:
        if user not in _ROOT:
            yield Capability.USERS, f"{where} is {user}"


def _services(task: Task) -> Iterator[tuple[str, str]]:
    named = [(f"artifact {a.source}", a.service) for a in task.artifacts]
    named += [(f"steps.{s.name}: artifact {a.source}", a.service) for s in task.steps for a in s.artifacts]
    named += [(f"environment.setup[{i}]", setup.service) for i, setup in enumerate(task.environment.setup)]
    for where, settings in _verifications(task):
        named.append((where, settings.service))
        named += [(f"{where}.collect[{i}]", hook.service) for i, hook in enumerate(settings.collect)]
    for where, service in named:
        if service != "main":
            yield Capability.COMPOSE, f"{where} is of service {service}"


def _verifications(task: Task) -> list[tuple[str, VerifierSettings]]:
    if task.steps:
        return [(f"steps.{step.name}.verifier", step.verifier) for step in task.steps]
    return [("verifier", task.verifier)]
