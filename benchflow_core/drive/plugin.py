"""The default driver: plays the compiled scenes in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.drivers import DriverSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts.drivers import Episode


async def play_scenes(episode: Episode, params: Mapping[str, Any]) -> None:
    """`params["steps"]` are the compiled turns. Between scenes every agent process is killed."""
    for step in params["steps"]:
        await episode.prompt(step.role, step.prompt, scene=step.scene)
        if step.ends_scene:
            await episode.end_scene()


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(summary="play the scenes of the config in order", drive=play_scenes, default=True)
