"""Settings of the feature `world`."""

from __future__ import annotations

from typing import Annotated

from benchflow_core.contracts import Also, Option, Settings, Texts
from benchflow_feature_world.choice import ChosenServices, read_state

__all__ = ["WorldSettings"]


class WorldSettings(Settings):
    """The environment that the agent acts in."""

    services: Annotated[Texts, Option("--service", metavar="NAME[:PORT]")] = ()
    """A service that runs beside the agent, as NAME, NAME:PORT or NAME?key=value; repeatable."""
    environment_manifest: Annotated[str | None, Option(metavar="PATH|NAME")] = None
    """The world the agent acts in: the path of an environment.toml, or NAME@VERSION."""
    state: Annotated[ChosenServices | None, Also(read_state, {"type": "string"}), Option(metavar="JSON|NAMES|PATH")] = (
        None
    )
    """Only these services of the environment: gmail,gcal or {"tools": ["gmail"]}, or a file with that."""
