"""Request name to the function that applies it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchflow_service_claw_gdoc.model.draft import Draft

__all__ = ["HANDLERS", "Reply", "handles"]

Reply = dict[str, Any] | None
Handler = Callable[[Draft, dict[str, Any]], Reply]

HANDLERS: dict[str, Handler] = {}


def handles(name: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS[name] = handler
        return handler

    return register
