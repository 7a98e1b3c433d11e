"""The methods by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchflow_service_claw_slack.call import SlackCall

__all__ = ["METHODS", "SlackMethod", "method"]

Handler = Callable[[SlackCall], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SlackMethod:
    name: str
    run: Handler
    scopes: tuple[str, ...] = ()
    """Any of them will do; what depends on the kind of channel is checked by the function itself."""
    people_only: bool = False
    """A bot's token is refused: not_allowed_token_type."""
    anonymous: bool = False


METHODS: dict[str, SlackMethod] = {}


def method(name: str, *scopes: str, people_only: bool = False, anonymous: bool = False) -> Callable[[Handler], Handler]:
    def register(run: Handler) -> Handler:
        if name in METHODS:
            raise ValueError(f"{name} is there already")
        METHODS[name] = SlackMethod(name, run, scopes, people_only, anonymous)
        return run

    return register
