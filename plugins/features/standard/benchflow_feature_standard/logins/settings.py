"""Settings of the feature `logins`."""

from __future__ import annotations

from typing import Annotated, Literal

from benchflow_core.contracts import Option, Settings

__all__ = ["LoginSettings"]


class LoginSettings(Settings):
    """How agents reach their models."""

    auth: Annotated[Literal["gateway", "native"], Option()] = "gateway"
    """native: the agent's login on this host goes into the box, past the gateway; marked in the result."""
