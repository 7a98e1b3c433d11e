"""`scenes`: the driver of a rollout that names none. Roles take turns, scene by scene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts import DriverSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import DriveStep, Episode
    from benchflow_driver_scenes.outbox import Outbox

OUTBOX: Final = ".outbox"
"""The folder in the working directory where roles write messages to each other."""


async def drive(episode: Episode, params: Mapping[str, Any]) -> None:
    """Play the turns of the config in order. Between scenes every agent process is killed."""
    for steps in _scenes(params["steps"]):
        await _play(episode, steps)
        if steps[-1].ends_scene:
            await episode.end_scene()


async def _play(episode: Episode, steps: Sequence[DriveStep]) -> None:
    roles = steps[0].roles
    if len(roles) < 2:
        for step in steps:
            await episode.prompt(step.role, step.prompt, scene=step.scene)
        return
    from benchflow_driver_scenes.outbox import Outbox

    outbox = Outbox(episode, OUTBOX, roles, one_each=steps[0].concurrent)
    await outbox.open()
    if steps[0].concurrent:
        await _play_concurrently(episode, steps, outbox)
    else:
        await _play_in_turn(episode, steps, outbox)
    await outbox.close()


async def _play_in_turn(episode: Episode, steps: Sequence[DriveStep], outbox: Outbox) -> None:
    for number, step in enumerate(steps, 1):
        await episode.prompt(step.role, outbox.deliver(step.role, step.prompt), scene=step.scene)
        sent = await outbox.collect(step.role)
        if step.stop_when and any(step.stop_when in message.content for message in sent):
            left = len(steps) - number
            episode.note("scene_stopped", {"scene": step.scene, "by": step.role, "turns_left": left})
            return


async def _play_concurrently(episode: Episode, steps: Sequence[DriveStep], outbox: Outbox) -> None:
    """Let each role go at its own pace. A message is there for a turn that starts after it was collected.

    If one agent fails, the others finish what they are at.
    """
    import asyncio

    from benchflow_core.errors import AgentError

    failures: list[AgentError] = []

    async def play(role: str) -> None:
        own = [step for step in steps if step.role == role]
        for number, step in enumerate(own):
            text = outbox.deliver(role, step.prompt)
            if number == 0:
                text = f"{episode.task.instruction if text is None else text}\n\n{outbox.instructions(role)}"
            await episode.prompt(role, text, scene=step.scene)
            await outbox.collect(role)

    async def try_to_play(role: str) -> None:
        try:
            await play(role)
        except AgentError as error:
            failures.append(error)

    try:
        async with asyncio.TaskGroup() as group:
            for role in dict.fromkeys(step.role for step in steps):
                group.create_task(try_to_play(role))
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    if failures:
        raise failures[0]


def _scenes(steps: Sequence[DriveStep]) -> Iterator[list[DriveStep]]:
    scene: list[DriveStep] = []
    for step in steps:
        scene.append(step)
        if step.ends_scene:
            yield scene
            scene = []
    if scene:
        yield scene


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(summary="play the scenes of the config in order", drive=drive, writable=(OUTBOX,), default=True)
