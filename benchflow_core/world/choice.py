"""Which services of an environment a rollout gets: all of them, or those that `--state` names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchflow_core.configfile import ConfigFile
from benchflow_core.errors import ConfigurationError, UsageError
from benchflow_core.quick import dataclass

__all__ = ["StateChoice", "read_state", "recorded_choice"]

_KEYS: Final = ("name", "tools")
_FILES: Final = (".json", ".yaml", ".yml")


@dataclass(frozen=True)
class StateChoice:
    """A part of an environment."""

    tools: Sequence[str]
    """The services that are there: `gmail` is also `claw-gmail` and `mock-gmail`."""
    name: str | None = None
    """What this part is called, in results."""

    def __post_init__(self) -> None:
        if not self.tools:
            raise ConfigurationError("state: 'tools' names no service.", remedy="Leave it out to have all of them.")


def read_state(text: str) -> dict[str, Any]:
    """As an option says it: a mapping in JSON, the path of a file with one, or just `gmail,gcal`."""
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise UsageError(f"--state: not JSON: {error}.") from None
    elif "/" in text or Path(text).suffix.lower() in _FILES:
        value = ConfigFile(text).data
    else:
        value = {"tools": [word.strip() for word in text.split(",") if word.strip()]}
    return _checked(value)


def _checked(value: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := [key for key in value if key not in _KEYS]:
        raise UsageError(f"--state: unknown key '{unknown[0]}'.", remedy=f"Known: {', '.join(_KEYS)}.")
    tools = value.get("tools")
    if not isinstance(tools, list) or not tools or not all(isinstance(tool, str) for tool in tools):
        raise UsageError('--state: \'tools\' must be a list of services, such as {"tools": ["gmail"]}.')
    if not isinstance(value.get("name", ""), str):
        raise UsageError("--state: 'name' must be text.")
    return dict(value)


def recorded_choice(world: Mapping[str, Any]) -> StateChoice | None:
    """As a rollout's files tell it."""
    return StateChoice(**world["chosen"]) if world.get("chosen") else None
