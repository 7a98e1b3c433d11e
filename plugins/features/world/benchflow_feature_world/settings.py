"""Settings of the feature `world`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["WorldSettings"]


class WorldSettings(BaseModel):
    """The environment that the agent acts in."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    services: tuple[Any, ...] = ()
    """A service that runs beside the agent, as NAME, NAME:PORT or NAME?key=value; repeatable."""
    environment_manifest: str | None = None
    """The world the agent acts in: the path of an environment.toml, or NAME@VERSION."""
    state: Any = None
    """Only these services of the environment: gmail,gcal or {"tools": ["gmail"]}, or a file with that."""
