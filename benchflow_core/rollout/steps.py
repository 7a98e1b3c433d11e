"""Multi-step tasks: each step prompts, collects and is verified in the same box, before the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.tasks import Rewards, Step
from benchflow_core.errors import BenchflowError, ErrorKind, TaskError
from benchflow_core.rollout import boxes, collect, prepare
from benchflow_core.rollout.verification import join_steps
from benchflow_core.task import meets_minimum

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["run_steps"]

_SETUP = '[ ! -f "$1/setup.sh" ] || (cd "$1" && bash "$1/setup.sh")'


async def run_steps(rollout: Rollout) -> None:
    """In order, until one is failed or below its `min_reward`; the task's dialect combines what was reached."""
    reached: list[Rewards | None] = []
    for step in rollout.plan.task.steps:
        rollout.step = step
        rollout.record.event("step_started", {"step": step.name})
        rewards = await _one(rollout, step)
        reached.append(rewards)
        lost = rewards is None and (rollout.error is not None or rollout.result.verifier_error is not None)
        enough = not lost and meets_minimum(rewards, step.min_reward)
        rollout.record.event("step_finished", {"step": step.name, "rewards": rewards, "continues": enough})
        if not enough:
            break
    rollout.step = None
    if rollout.config.verify and any(r is not None for r in reached):
        rollout.result.rewards = rollout.plan.task.dialect.combine(reached)
        join_steps(rollout.result, rollout.plan.task.dialect.combine)


async def _one(rollout: Rollout, step: Step) -> Rewards | None:
    entry: dict[str, Any] = {"name": step.name, "rewards": None, "error": None, "verifier_error": None}
    rollout.result.step_results.append(entry)
    try:
        await _make_ready(rollout, step)
        await prepare.ready_agent(rollout)
    except BenchflowError as error:
        entry["error"] = error.to_json()
        raise
    await rollout.drive()
    if rollout.error is not None:
        entry["error"] = rollout.error.to_json()
        if rollout.error.kind is not ErrorKind.AGENT:
            raise rollout.error
    await rollout.features.leave("agent")
    folder = rollout.record.dir.steps / step.name
    await collect.collect_logs(rollout.sandbox, folder / "agent", rollout.host.redactor)
    wanted = (*rollout.plan.task.artifacts, *step.artifacts)
    await collect.collect_artifacts(
        rollout.sandbox, wanted, collect.named_workdir(rollout), folder / "artifacts", rollout.host.redactor
    )
    if rollout.config.verify:
        entry["rewards"] = await rollout.verify()
        entry["verifier_error"] = rollout.result.verifier_error_info
    else:
        if await rollout.keeper.capture() is not None:
            async with rollout.features.verification(rollout.box_view, folder):
                pass
    return entry["rewards"]  # type: ignore[no-any-return]


async def _make_ready(rollout: Rollout, step: Step) -> None:
    """Files, then `setup.sh` as the step's user, then the health check."""
    if step.workdir_files is not None:
        await rollout.sandbox.upload(step.workdir_files, rollout.workdir, user=step.agent_user)
        argv = ("bash", "-c", _SETUP, "bash", rollout.workdir)
        done = await rollout.sandbox.exec(argv, user=step.agent_user or rollout.plan.task.agent_user, timeout=600)
        if done.exit_code or done.timed_out:
            how = "took longer than 600 s" if done.timed_out else f"failed with exit code {done.exit_code}"
            raise TaskError(f"setup.sh of step '{step.name}' {how}{boxes.said(done.stderr)}")
    if step.healthcheck is not None:
        await boxes.wait_healthy(rollout.sandbox, step.healthcheck)
