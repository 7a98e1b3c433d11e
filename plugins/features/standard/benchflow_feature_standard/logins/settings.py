"""Settings of the feature `logins`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["LoginSettings"]


class LoginSettings(BaseModel):
    """How agents reach their models."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    auth: Literal["gateway", "native"] = "gateway"
    """native: the agent's login on this host goes into the box, past the gateway; marked in the result."""
