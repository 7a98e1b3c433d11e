"""The default driver: plays the compiled scenes in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.drivers import DriverSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts.drivers import Episode
    from benchflow_core.drive.outbox import Outbox
    from benchflow_core.drive.scenes import DriveStep


async def play_scenes(episode: Episode, params: Mapping[str, Any]) -> None:
    """`params["steps"]` are the compiled turns. Between scenes every agent process is killed."""
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
    from benchflow_core.drive.outbox import Outbox

    outbox = Outbox(episode, roles, apart=steps[0].concurrent)
    await outbox.open()
    if steps[0].concurrent:
        await _together(episode, steps, outbox)
    else:
        await _in_turn(episode, steps, outbox)
    await outbox.close()


async def _in_turn(episode: Episode, steps: Sequence[DriveStep], outbox: Outbox) -> None:
    for number, step in enumerate(steps, 1):
        await episode.prompt(step.role, outbox.deliver(step.role, step.prompt), scene=step.scene)
        said = await outbox.collect(step.role)
        if step.stop_when and any(step.stop_when in message.content for message in said):
            left = len(steps) - number
            episode.note("scene_stopped", {"scene": step.scene, "by": step.role, "turns_left": left})
            return


async def _together(episode: Episode, steps: Sequence[DriveStep], outbox: Outbox) -> None:
    """Each role at its own pace. A message is there for a turn that starts after it was collected.

    Where one agent fails, the others finish what they are at.
    """
    import asyncio

    from benchflow_core.errors import AgentError

    failures: list[AgentError] = []

    async def play(role: str) -> None:
        own = [step for step in steps if step.role == role]
        for number, step in enumerate(own):
            text = outbox.deliver(role, step.prompt)
            if number == 0:
                text = f"{episode.task.instruction if text is None else text}\n\n{outbox.where(role)}"
            await episode.prompt(role, text, scene=step.scene)
            await outbox.collect(role)

    async def try_to(role: str) -> None:
        try:
            await play(role)
        except AgentError as error:
            failures.append(error)

    try:
        async with asyncio.TaskGroup() as group:
            for role in dict.fromkeys(step.role for step in steps):
                group.create_task(try_to(role))
    except ExceptionGroup as group_error:
        raise group_error.exceptions[0] from None  # what it is, not that there were several
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
    return DriverSpec(summary="play the scenes of the config in order", drive=play_scenes, default=True)
