"""Which services of an environment a rollout gets: all of them, or those that `--state` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from benchflow_core.contracts.bounded_yaml import load_yaml
from benchflow_core.errors import ConfigurationError

__all__ = ["ChosenServices", "choose_services", "read_state"]

T = TypeVar("T")


@dataclass(frozen=True)
class ChosenServices:
    """A part of an environment."""

    tools: Sequence[str]
    """The services that are there: `gmail` is also `claw-gmail` and `mock-gmail`."""
    name: str | None = None
    """What this part is called, in results."""

    def __post_init__(self) -> None:
        if not self.tools:
            raise ConfigurationError("state: 'tools' names no service.", remedy="Leave it out to have all of them.")


def read_state(value: Any) -> Any:
    """Read `gmail,gcal`, a mapping in JSON, or the path of a file with one."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return load_yaml(value, "state")[0]
    if "/" not in value and Path(value).suffix.lower() not in (".json", ".yaml", ".yml"):
        return {"tools": [word.strip() for word in value.split(",") if word.strip()]}
    try:
        return load_yaml(Path(value).read_text("utf-8"), value)[0]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{value} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def choose_services(choice: ChosenServices, services: Iterable[T], names_of: Callable[[T], Iterable[str]]) -> list[T]:
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
