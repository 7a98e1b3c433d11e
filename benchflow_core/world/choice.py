"""Which services of an environment a rollout gets: all of them, or those that `--state` names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from benchflow_core.configfile import ConfigFile
from benchflow_core.errors import ConfigurationError, UsageError
from benchflow_core.quick import dataclass

__all__ = ["StateChoice", "choose_services", "read_state", "recorded_choice"]

T = TypeVar("T")
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


def choose_services(choice: StateChoice, services: Iterable[T], names_of: Callable[[T], Iterable[str]]) -> list[T]:
    """Those that were named, in their own order. A name that fits none, or several, is refused."""
    known = [(service, [name.lower() for name in names_of(service)]) for service in services]
    chosen: list[T] = []
    for tool in choice.tools:
        word = tool.strip().lower()
        exact = [service for service, names in known if word in names]
        found = exact or [service for service, names in known if any(word in name.split("-") for name in names)]
        if len(found) != 1:
            raise _unclear(tool, [names[0] for _, names in known], several=len(found) > 1)
        chosen += found
    return [service for service, _ in known if service in chosen]


def _unclear(tool: str, names: Sequence[str], *, several: bool) -> ConfigurationError:
    if several:
        return ConfigurationError(f"state: more than one service is a '{tool}'.", remedy=f"Write one of {_all(names)}.")
    parts = {part: name for name in names for part in (*name.split("-"), name)}
    close = get_close_matches(tool.lower(), list(parts), 1)
    hint = f"Did you mean '{parts[close[0]]}'? " if close else ""
    return ConfigurationError(f"state: the environment has no '{tool}'.", remedy=f"{hint}It has {_all(names)}.")


def _all(names: Sequence[str]) -> str:
    return ", ".join(names) or "no services of its own"
