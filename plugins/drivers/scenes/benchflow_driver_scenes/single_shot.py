"""`single-shot`: one prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import DriverSpec
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import Episode


async def drive(episode: Episode, params: Mapping[str, Any]) -> None:
    from benchflow_driver_scenes.rounds import opening

    await episode.prompt(*opening(episode, params))


def refuse(params: Mapping[str, Any]) -> None:
    from benchflow_driver_scenes.rounds import refuse_turns

    refuse_turns(params)


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(summary="one prompt, the task's instruction", drive=drive, refuse=refuse)
