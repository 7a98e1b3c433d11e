"""The agent's time: a driver, or a simulated user, prompts until it is done."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any

from benchflow_core.errors import AgentError, AgentStartError, AgentTimeout, VerifierTimeout
from benchflow_core.rollout import access, prepare
from benchflow_core.rollout.credit import disk_full, stood_still, time_credit
from benchflow_core.rollout.deadline import deadline
from benchflow_core.rollout.episode import RolloutEpisode

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["agent_time", "drive", "note_limits"]


async def drive(rollout: Rollout) -> None:
    """Let the driver play; an agent's own failure is recorded, and what it left is verified as it stands."""
    async with AsyncExitStack() as stack:
        episode = RolloutEpisode(rollout, stack)
        await _play(rollout, episode)
        await _finish(rollout, episode)


async def _play(rollout: Rollout, episode: RolloutEpisode) -> None:
    try:
        async with (
            rollout.in_phase("execute", "agent_execution"),
            agent_time(rollout),
            access.granted(rollout),
            rollout.features.lifetime("turns", rollout.box_view),
        ):
            if rollout.user is not None:
                rollout.user.attach(episode)
            await rollout.plan.driver.spec.drive(episode, _params(rollout))
        await rollout.disconnect(leave=True)
    except AgentError as error:
        if (ours := stood_still(rollout) or disk_full(rollout)) is not None:
            raise ours from error
        if not rollout.prompt_accepted:
            raise start_failure(rollout, error) from error
        rollout.fail(error)
        rollout.result.flags.append(error.code.replace("_", "-"))
    finally:
        await rollout.disconnect()
        note_limits(rollout)


async def _finish(rollout: Rollout, episode: RolloutEpisode) -> None:
    """What the driver does after the agent's time, within the verifier's."""
    spec, limit = rollout.plan.driver.spec, rollout.settings().timeout
    if spec.finish is None:
        return
    async with deadline(limit, lambda: VerifierTimeout(f"the driver did not finish within {limit:g} s.")):
        await spec.finish(episode, _params(rollout))


def start_failure(rollout: Rollout, error: AgentError) -> AgentStartError:
    """An agent's failure before its first prompt: unscored, tried again, with what to do about it."""
    log = rollout.record.dir.agent.relative_to(rollout.dir)
    names = " or ".join(f"bench agent check {name}" for name in rollout.plan.agents)
    return AgentStartError(
        f"before the first prompt: {error.message}",
        remedy=error.remedy or f"Its output is in {log}/; try it alone with {names}.",
        details={**error.details, "cause": error.code},
    )


def note_limits(rollout: Rollout) -> None:
    """Whoever ran into a limit of the box is verified as it stands, and the result says so."""
    flags = (f"{name}-limit" for name in rollout.sandbox.info.limits_hit)
    rollout.result.flags += [flag for flag in flags if flag not in rollout.result.flags]


def agent_time(rollout: Rollout) -> AbstractAsyncContextManager[None]:
    """What is left of it, without the time that was not the agent's."""
    limit = prepare.agent_limit(rollout)
    details = {"reason": "wall-clock", "timeout_sec": limit}

    def late() -> AgentTimeout:
        return AgentTimeout(f"the agent used up its {limit:g} s.", details=details)

    return deadline(limit, late, time_credit(rollout))


def _params(rollout: Rollout) -> dict[str, Any]:
    return {"steps": rollout.plan.steps, **rollout.plan.driver_params}
