"""The base of every model of settings, the kernel's and those of features."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict  # noqa: TID253

__all__ = ["Settings"]


class Settings(BaseModel):
    """Settings that do not change: unknown names are refused, and `model_copy(update={…})` makes others."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True, defer_build=True, allow_inf_nan=False
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        """Read no docstrings of the dataclasses in it: that costs 30 ms of every command."""
        cls.model_config["use_attribute_docstrings"] = False
