"""Answers to `session/request_permission` by policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["CANCELLED", "choose_option", "selected"]

CANCELLED: Mapping[str, Any] = {"outcome": "cancelled"}

_PREFERRED = {
    "allow": ("allow_always", "allow_once"),
    # Each thing is asked for again.
    "ask": ("allow_once", "allow_always"),
    "reject": ("reject_once", "reject_always"),
}


def choose_option(policy: str, options: Any) -> str | None:
    """The option's id: the preferred kinds first, then any kind of that direction. `None`: nothing fits."""
    offered = [o for o in options if _is_option(o)] if isinstance(options, list) else []
    for kind in _PREFERRED[policy]:
        for option in offered:
            if option["kind"] == kind:
                return str(option["optionId"])
    direction = _PREFERRED[policy][0].partition("_")[0]
    return next((str(o["optionId"]) for o in offered if o["kind"].startswith(direction)), None)


def selected(option_id: str | None, options: Any) -> Mapping[str, Any]:
    """The outcome to send. An id that was not offered is no consent."""
    ids = {o["optionId"] for o in options if _is_option(o)} if isinstance(options, list) else set()
    return {"outcome": "selected", "optionId": option_id} if option_id in ids else CANCELLED


def _is_option(option: Any) -> bool:
    return (
        isinstance(option, Mapping) and isinstance(option.get("optionId"), str) and isinstance(option.get("kind"), str)
    )
