"""What settings are made of: the types of fields that are objects, and the shorter ways to write a value."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field  # noqa: TID253

from benchflow_core.contracts.settings import Also, Option
from benchflow_core.errors import ConfigurationError, error_names
from benchflow_core.quick import dataclass
from benchflow_core.settings.words import driver_word

__all__ = ["Count", "Folder", "LoopSettings", "RetryConfig", "Seconds", "Source"]

_TIMES: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")


def read_time(value: Any) -> Any:
    """Read `90`, `90s`, `15m`, `2h` or `1d` as seconds."""
    if not isinstance(value, str):
        return value
    found = _TIME.fullmatch(value.strip().lower())
    if found is None:
        raise ConfigurationError(f"'{value}' is not a duration: write 90, 90s, 15m, 2h or 1d.")
    return float(found[1]) * _TIMES[found[2]]


def read_idle(value: Any) -> Any:
    return None if value in (0, "none", "0") else read_time(value)


def _home(value: Any) -> Any:
    return os.path.expanduser(value) if isinstance(value, str) else value  # noqa: PTH111


def read_numbers(value: Any) -> Any:
    """Read the numbers of a table that a command line gives as text."""
    if not isinstance(value, Mapping):
        return value
    return {name: int(n) if isinstance(n, str) and n.isdigit() else n for name, n in value.items()}


def read_loop(value: Any) -> Any:
    """Read `name:k=3,feedback=names`."""
    return dict(zip(("strategy", "params"), driver_word(value), strict=True)) if isinstance(value, str) else value


def read_mode(value: Any) -> Any:
    return value["mode"] if isinstance(value, dict) and value.keys() == {"mode"} else value


Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
Folder = Annotated[Path, Field(strict=False), Also(_home, {"type": "string"})]
TEXT: Final = {"type": "string"}
EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True)
class Source:
    """Tasks of a repository, at a branch, tag or commit."""

    repo: Annotated[str, Option(metavar="REPO", help="Tasks of a git repository: a URL, owner/name, or a folder.")]
    path: Annotated[str | None, Option(metavar="PATH", help="The task or the folder of tasks in it.")] = None
    ref: Annotated[
        str | None, Option(metavar="REF", help="Branch, tag or commit; without it the default branch as it is.")
    ] = None


@dataclass(frozen=True)
class LoopSettings:
    """A driver and its parameters."""

    strategy: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RetryConfig:
    """Retry follows the type of an error, never the reward."""

    max_retries: int = 2
    wait_multiplier: float = 2.0
    min_wait_sec: float = 1.0
    max_wait_sec: float = 30.0
    only: Sequence[str] = ()
    """Types (`infrastructure`, `provider` …) or codes (`sandbox_lost` …) of errors to try again. None: all worth it."""
    exclude: Sequence[str] = ()
    """Types or codes never to try again."""

    def __post_init__(self) -> None:
        known = error_names()
        for name in {
            *self.only,
            *self.exclude,
        } - known:  # plugins have codes of their own; a slip is close to one of ours
            if close := get_close_matches(name, known, 1, 0.8):
                raise ConfigurationError(f"retry: no error is called '{name}', did you mean '{close[0]}'?")

    def covers(self, result: Mapping[str, Any]) -> bool:
        """Whether what ended so is worth another attempt, by the type of its error, never by its reward."""
        info = result.get("error_info") or {}
        if result.get("rewards") is not None or not info.get("retryable"):
            return False
        names = {info["kind"], info["code"]}
        return names.isdisjoint(self.exclude) and (not self.only or not names.isdisjoint(self.only))

    def wait(self, attempt: int) -> float:
        """Return the seconds before the attempt after number `attempt`."""
        return min(self.max_wait_sec, self.min_wait_sec * self.wait_multiplier ** (attempt - 1))
