"""`simulated-user`: the driver of a rollout with a user. Rounds of its prompt, a turn and a soft verification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import DriverSpec, RoundResult
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import BaseUser, Episode, SoftVerdict, TurnRecord


async def drive(episode: Episode, params: Mapping[str, Any]) -> None:
    """Play until the user stops or the rounds are used up."""
    from benchflow_core.errors import ConfigurationError

    role, instruction = episode.roles[0], episode.task.instruction
    await episode.ask_user("setup", instruction, await episode.solution() if params["oracle_access"] else None)
    result: RoundResult | None = None
    rewards: list[float | None] = []
    stopped = "max_rounds"
    for number in range(params["max_rounds"]):
        prompt = await episode.ask_user("run", number, instruction, result)
        if prompt is None:
            stopped = "user"
            break
        if not isinstance(prompt, str) or not prompt.strip():
            raise ConfigurationError(f"the user's answer in round {number} is {prompt!r}, neither a prompt nor None.")
        turn = await episode.prompt(role, prompt)
        result = _round_result(number, turn, await episode.soft_verify())
        rewards.append((result.rewards or {}).get("reward"))
        episode.note("user_round", {"round": number, "rewards": result.rewards, "error": result.verifier_error})
    episode.report({"strategy": "user", "iterations_run": len(rewards), "stop_reason": stopped, "rewards": rewards})


def _round_result(number: int, turn: TurnRecord, verdict: SoftVerdict) -> RoundResult:
    return RoundResult(
        round=number,
        trajectory=turn.events,
        rewards=verdict.rewards,
        verifier_output=verdict.output,
        verifier_error=verdict.error,
        n_tool_calls=turn.n_tool_calls,
        scene=turn.scene,
        role=turn.role,
        tests=verdict.tests,
    )


def _refuse(params: Mapping[str, Any]) -> None:
    from benchflow_core.errors import ConfigurationError

    if "max_rounds" not in params:
        raise ConfigurationError(
            "this driver plays a simulated user, and there is none.", remedy="Give one in Python, with user=…."
        )
    if params["max_rounds"] < 1:
        raise ConfigurationError(f"max_user_rounds is {params['max_rounds']}: a user needs at least one round.")


def _user(settings: Mapping[str, str | None]) -> BaseUser:
    from benchflow_driver_scenes.model_user import ModelUser

    return ModelUser(settings.get("persona"), model=settings.get("model"))


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(summary="rounds with a simulated user", drive=drive, refuse=_refuse, user=_user)
