"""Branching: from one state, several continuations, each in a box and a world of its own and with its own reward."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.sandboxes import ImageRef, Sandbox, SandboxProvider, Snapshot
from benchflow_core.errors import AgentError, BenchflowError, CapabilityMissing, ConfigurationError
from benchflow_core.quick import dataclass
from benchflow_core.results.files import write_json
from benchflow_core.rollout import prepare
from benchflow_core.rollout.driving import start_failure
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.plan import Plan
from benchflow_core.rollout.result import RolloutResult
from benchflow_core.settings.models import RolloutConfig

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["Branch", "Origin", "RunChild", "branch", "run_children"]

FOLDER: Final = "branches"
RunChild = Callable[["Rollout", int], Awaitable[None]]
_WHY: Final = "what the agent changed before the branch counts as the image's: it was not put back for the verifier"


@dataclass(frozen=True)
class Branch:
    """The children of one state, in order."""

    children: tuple[RolloutResult, ...]

    @property
    def rewards(self) -> list[float | None]:
        return [child.reward for child in self.children]

    @property
    def value(self) -> float | None:
        """The mean of the children's rewards; of those that have one. None where none has."""
        known = [reward for reward in self.rewards if reward is not None]
        return sum(known) / len(known) if known else None

    def to_json(self) -> dict[str, Any]:
        rows = [
            {"rollout": c.rollout_name, "rewards": c.rewards, "outcome": c.outcome, "error": c.error_info}
            for c in self.children
        ]
        scored = sum(reward is not None for reward in self.rewards)
        return {"schema_version": "1.0", "n": len(rows), "scored": scored, "value": self.value, "children": rows}


@dataclass(frozen=True)
class Origin:
    """What the children start from."""

    config: RolloutConfig
    plan: Plan
    host: Host
    provider: SandboxProvider
    image: ImageRef
    snapshot: Snapshot | None
    """None: the children's boxes start from the image, and only the world goes on."""
    workdir: str
    folder: Path
    """Of the parent; the children are below it."""
    saved: Path | None = None
    """What the parent's features saved."""
    sessions: Mapping[str, str] = field(default_factory=dict)


async def branch(
    rollout: Rollout,
    n: int,
    run_child: RunChild | None,
    *,
    prompts: Sequence[str | None] | None,
    concurrency: int,
    load_session: bool,
    require_sandbox_snapshot: bool,
) -> Branch:
    whole = _refuse(rollout, n, require_sandbox_snapshot)
    sessions = rollout.session_ids() if load_session else {}
    await rollout.disconnect()
    async with _still(rollout.sandbox):
        number = len(list((rollout.dir / FOLDER).glob("state-*")))
        saved = rollout.dir / FOLDER / f"state-{number}"
        await rollout.features.save(saved)
        snapshot = await rollout.sandbox.snapshot(f"branch-{secrets.token_hex(4)}") if whole else None
    origin = Origin(
        rollout.config, rollout.plan, rollout.host, rollout.provider, rollout.image, snapshot, rollout.workdir,
        rollout.dir, saved, sessions,
    )  # fmt: skip
    try:
        return await run_children(origin, n, run_child, prompts=prompts, concurrency=concurrency)
    finally:
        if snapshot is not None:
            await rollout.provider.forget(snapshot)


def _refuse(rollout: Rollout, n: int, needs_snapshot: bool) -> bool:
    """Whether the agent's box can be captured, too."""
    plan = rollout.plan
    if n < 1:
        raise ConfigurationError(f"a branch has at least one child, not {n}.")
    if plan.task.steps:
        raise CapabilityMissing(f"task '{plan.task.name}' has several steps: it cannot be branched.")
    whole = Capability.SNAPSHOT in plan.capabilities and plan.task.environment.compose is None
    if not whole and needs_snapshot:
        raise CapabilityMissing(f"sandbox '{plan.sandbox.name}' makes no snapshot of this task's box to branch from.")
    return whole


@asynccontextmanager
async def _still(box: Sandbox) -> AsyncIterator[None]:
    """What agents left running stands still, so that box and world are caught at one moment."""
    pids = [str(pid) for pid in await box.processes()]
    stopped = bool(pids) and not (await box.exec(("kill", "-STOP", *pids), cwd="/", user="root", timeout=10)).exit_code
    try:
        yield
    finally:
        if stopped:
            await box.exec(("kill", "-CONT", *pids), cwd="/", user="root", timeout=10)


async def run_children(
    origin: Origin, n: int, run_child: RunChild | None, *, prompts: Sequence[str | None] | None, concurrency: int
) -> Branch:
    """Each to its end; one that fails does not keep another from its reward."""
    room = asyncio.Semaphore(max(1, concurrency))
    first = len([path for path in (origin.folder / FOLDER).glob("*") if path.name.isdigit()])

    async def one(number: int) -> RolloutResult:
        async with room:
            return await _child(origin, first + number, number, run_child, prompts)

    tasks = [asyncio.ensure_future(one(number)) for number in range(n)]
    try:
        found = Branch(tuple(await asyncio.gather(*tasks)))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    write_json(origin.folder / "branch.json", found.to_json())
    return found


async def _child(
    origin: Origin, name: int, number: int, run_child: RunChild | None, prompts: Sequence[str | None] | None
) -> RolloutResult:
    from benchflow_core.rollout.rollout import Rollout

    own = {"jobs_dir": origin.folder, "job_name": FOLDER, "rollout_name": str(name), "keep_state": "none"}
    config = origin.config.model_copy(update=own)
    child = await Rollout.create(config, origin.host, plan=origin.plan)
    try:
        await child.setup()
        child.goes_on_from, child.loads = origin.saved, dict(origin.sessions)
        await _start(child, origin)
        await child.install_agent()
        try:
            await _play(child, number, run_child, prompts)
        except AgentError as error:
            if not child.prompt_accepted:
                raise start_failure(child, error) from error
            child.fail(error)
            child.result.flags.append(error.code.replace("_", "-"))
        await child.gather()
        if child.result.rewards is None and config.verify:
            await child.verify()
        if origin.snapshot is not None and Capability.CHANGES_CARRIED not in origin.plan.capabilities:
            child.result.findings.append({"code": "branch-origin", "path": "/", "action": "noted", "why": _WHY})
    except BenchflowError as error:
        child.fail(error)
    finally:
        with suppress(BenchflowError):
            await asyncio.shield(child.cleanup())
    return child.result


async def _start(child: Rollout, origin: Origin) -> None:
    if origin.snapshot is None:
        await child.start()
        return
    carry = Capability.CHANGES_CARRIED in origin.plan.capabilities
    request = replace(prepare.start_request(child), carry_changes=carry)
    box = await origin.provider.start(origin.snapshot.image, request)
    child.adopt(origin.provider, origin.image, box, origin.workdir)
    await child.features.enter("box", child.box_view)


async def _play(child: Rollout, number: int, run_child: RunChild | None, prompts: Sequence[str | None] | None) -> None:
    if run_child is not None:
        await run_child(child, number)
    elif prompts is not None:
        await child.execute(prompts)
    else:
        await child.drive()
