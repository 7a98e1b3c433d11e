"""What a role may see and write in the box that it shares with others, and who may read the reference solution."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.sandboxes import AccessView
from benchflow_core.contracts.scenes import Role, Scene
from benchflow_core.errors import CapabilityMissing, ConfigurationError

if TYPE_CHECKING:
    from benchflow_core.plugins import Loaded
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["check_access", "granted", "limited_roles", "oracle_roles", "role_view", "try_views"]

SOLUTION: Final = "/solution"


def oracle_roles(scenes: Sequence[Scene]) -> frozenset[str]:
    """Roles that may read the solution: said so, or, among several roles, prompted with its path by the config."""
    found = set()
    for scene in scenes:
        for role in scene.roles:
            told = any(turn.role == role.name and SOLUTION in (turn.prompt or "") for turn in scene.turns)
            if role.oracle_access or (role.oracle_access is None and told and len(scene.roles) > 1):
                found.add(role.name)
    return frozenset(found)


def limited_roles(roles: Mapping[str, Role], oracles: frozenset[str], locked: Sequence[str]) -> list[str]:
    """Roles whose processes do not see everything as it is."""
    return [name for name, role in roles.items() if locked or role.read_only or (oracles and name not in oracles)]


def check_access(
    roles: Mapping[str, Role],
    oracles: frozenset[str],
    locked: Sequence[str],
    sandbox: Loaded,
    capabilities: frozenset[str],
) -> list[str]:
    """Refuse what the sandbox cannot enforce; say what was granted."""
    for path in locked:
        if not path.startswith("/") or ".." in path.split("/") or not path.strip("/"):
            raise ConfigurationError(f"sandbox_locked_paths: '{path}' is no absolute path below the box's root.")
    limited = limited_roles(roles, oracles, locked)
    if limited and Capability.ACCESS_VIEW not in capabilities:
        raise CapabilityMissing(
            f"sandbox '{sandbox.name}' cannot enforce what role '{limited[0]}' may read and write.",
            remedy=f"Use a sandbox with the capability {Capability.ACCESS_VIEW}.",
        )
    return [f"role '{name}' may read the reference solution in {SOLUTION}" for name in sorted(oracles)]


def role_view(rollout: Rollout, role: Role) -> AccessView | None:
    """The limits of a role's processes."""
    hidden = tuple(rollout.config.sandbox_locked_paths)
    hidden += (SOLUTION,) if rollout.plan.oracles and role.name not in rollout.plan.oracles else ()
    if Capability.ACCESS_VIEW in rollout.plan.capabilities:
        hidden += tuple(rollout.home_of(other) for other in rollout.plan.homes if other != role.name)
    if not role.read_only:
        return AccessView(hidden=hidden) if hidden else None
    shared = (f"{rollout.workdir.rstrip('/')}/{name}" for name in rollout.plan.driver.spec.writable)
    own = (*shared, rollout.agent_home, "/tmp", "/var/tmp", "/dev/shm", "/logs/agent")
    return AccessView(read_only=("/",), hidden=hidden, writable=own)


async def try_views(rollout: Rollout) -> None:
    """Start a program under the first limited role's view, before any turn is paid for: some sandboxes know only in a
    box whether it can limit what a program sees, and refuse there."""
    views = (role_view(rollout, role) for role in rollout.plan.roles.values())
    if view := next(filter(None, views), None):
        await rollout.sandbox.exec(("true",), user=rollout.agent_user, cwd="/", view=view, timeout=60)


@asynccontextmanager
async def granted(rollout: Rollout) -> AsyncIterator[None]:
    """What prompts speak of is in the box while agents work there, and gone before the verifier looks: the solution
    for those that may read it, and the instruction in the working directory where a prompt names it there."""
    solution = (rollout.step.solution if rollout.step else None) or rollout.plan.task.solution
    sandbox, lent = rollout.sandbox, []
    if rollout.plan.oracles and solution is not None:
        await sandbox.upload(solution.dir, SOLUTION)
        lent.append(SOLUTION)
    instruction = f"{rollout.workdir.rstrip('/')}/instruction.md"
    if any(instruction in (step.prompt or "") for step in rollout.plan.steps):
        there = await sandbox.exec(("test", "-e", instruction), user="root", cwd="/", timeout=60)
        if there.exit_code:
            await sandbox.upload(rollout.host.text_file(rollout.instruction()), instruction, mode=0o644)
            lent.append(instruction)
    try:
        yield
    finally:
        if lent:
            await sandbox.exec(("rm", "-rf", *lent), user="root", cwd="/", timeout=60)
