"""`verify-retry`: try again while the tests fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import DriverSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import Episode


async def drive(episode: Episode, params: Mapping[str, Any]) -> None:
    """At most `k` retries. The tests run where the agent cannot see them."""
    from benchflow_driver_scenes.feedback import feedback
    from benchflow_driver_scenes.rounds import Rounds, opening, passed

    rounds, (role, prompt) = Rounds("verify-retry", params), opening(episode, params)
    for _ in range(int(params["k"]) + 1):
        turn = await episode.prompt(role, prompt)
        verdict = await episode.soft_verify()
        rounds.add(episode, turn, verdict)
        if passed(verdict):
            rounds.report(episode, "passed_bar")
            return
        prompt = feedback(verdict, params["feedback"])
    rounds.report(episode, "max_iterations")


def refuse(params: Mapping[str, Any]) -> None:
    from benchflow_driver_scenes.feedback import check_level
    from benchflow_driver_scenes.rounds import refuse_below

    check_level(params["feedback"])
    refuse_below(0, "k")(params)


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(
        summary="try again while the tests fail: k retries, feedback none|counts|names|raw",
        drive=drive,
        params={"k": 3, "feedback": "names"},
        refuse=refuse,
    )
