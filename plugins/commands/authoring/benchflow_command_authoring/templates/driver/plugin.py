"""The plugin: the driver's parameters, and the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchflow_core.contracts import DriverSpec, Episode
from benchflow_core.hookspecs import hookimpl

PARAMS = {"tries": 3, "reminder": "The tests still fail. Look again."}


async def drive(episode: Episode, params: Mapping[str, Any]) -> None:
    from {{module}}.loop import drive_loop

    await drive_loop(episode, tries=int(params["tries"]), reminder=str(params["reminder"]))


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(summary="more tries while the tests fail", drive=drive, params=PARAMS)
