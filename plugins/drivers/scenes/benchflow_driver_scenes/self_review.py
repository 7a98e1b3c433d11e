"""`self-review`: the agent checks its own work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import DriverSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import Episode

_REVIEW = "Review your solution against the task. Run what can be run, look for mistakes and edge cases, and fix them."


async def drive(episode: Episode, params: Mapping[str, Any]) -> None:
    """`k` reviews. The reward of each round is recorded and never told."""
    from benchflow_driver_scenes.rounds import Rounds, opening

    rounds, (role, first) = Rounds("self-review", params), opening(episode, params)
    for number in range(int(params["k"]) + 1):
        turn = await episode.prompt(role, _REVIEW if number else first)
        rounds.add(episode, turn, await episode.soft_verify())
    rounds.report(episode, "max_iterations")


def refuse(params: Mapping[str, Any]) -> None:
    from benchflow_driver_scenes.rounds import refuse_below

    refuse_below(0, "k")(params)


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(summary="the agent reviews its own work k times", drive=drive, params={"k": 3}, refuse=refuse)
