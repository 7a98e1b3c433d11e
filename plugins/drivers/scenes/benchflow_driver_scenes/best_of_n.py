"""`best-of-n`: independent attempts from one state; the best is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import Capability, DriverSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import Episode, Snapshot


async def drive(episode: Episode, params: Mapping[str, Any]) -> None:
    """Each attempt is a new session on the box as it was at the start. An attempt that passes ends the search.

    One whose agent fails counts as it stands, and takes nothing from the others.
    """
    from benchflow_core.errors import AgentError
    from benchflow_driver_scenes.rounds import Rounds, opening, passed

    rounds, (role, prompt), box = Rounds("best-of-n", params), opening(episode, params), episode.sandbox
    start = await box.snapshot("best-of-n-start")
    states: list[Snapshot] = []
    failures: list[AgentError | None] = []
    for number in range(params["n"]):
        if number:
            await box.restore(start)
        turn, failure = None, None
        try:
            turn = await episode.prompt(role, prompt)
        except AgentError as error:
            failure = error
        failures.append(failure)
        verdict = await episode.soft_verify()
        rounds.add(episode, turn, verdict)
        await episode.end_scene()
        states.append(await box.snapshot(f"best-of-n-{number}"))
        if passed(verdict):
            break
    best = max(range(len(states)), key=lambda n: (rounds.rewards[n] or 0.0, -n))
    if best != len(states) - 1:
        await box.restore(states[best])
    passes = (rounds.rewards[best] or 0.0) >= 1.0
    failed = {"failures": {n: str(why) for n, why in enumerate(failures) if why}} if any(failures) else {}
    rounds.report(episode, "passed_bar" if passes else "max_iterations", chosen=best, chosen_by="verifier", **failed)
    if (chosen := failures[best]) is not None:
        raise chosen


def refuse(params: Mapping[str, Any]) -> None:
    from benchflow_driver_scenes.rounds import refuse_below

    refuse_below(1, "n")(params)


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(
        summary="n independent attempts, the best by the tests is kept",
        drive=drive,
        params={"n": 3},
        refuse=refuse,
        needs=frozenset({Capability.SNAPSHOT, Capability.RESTORE}),
    )
