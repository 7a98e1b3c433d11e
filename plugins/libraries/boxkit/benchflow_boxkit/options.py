"""How a cloud is set up: credentials, and `--sandbox-option` values, refused in one line where they are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from benchflow_boxkit.sandbox import require_options
from benchflow_core.contracts.common import Availability
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["COMMON", "Credentials", "Options", "with_login"]

COMMON: Final = {
    "creates_at_once": "requests for new boxes under way at the same time (16)",
    "create_tries": "how often a box is asked for before the rollout fails (6)",
}
"""Options of every cloud, which a plugin adds to its own."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """An account at a vendor, as the environment and the vendor's own login file give it."""

    vendor: str
    values: Mapping[str, str] = field(repr=False)
    place: str
    """The account's address, for messages."""
    missing: str
    """What is not set; empty where nothing is missing."""
    remedy: str

    def availability(self) -> Availability:
        """Report whether there are credentials, without a request to the vendor."""
        if self.missing:
            return Availability(False, self.missing, self.remedy)
        return Availability(True, f"credentials are set, {self.place}")

    def require(self) -> Mapping[str, str]:
        if self.missing:
            raise ConfigurationError(f"{self.vendor} has no credentials: {self.missing}.", remedy=self.remedy)
        return self.values


def with_login(
    env: Mapping[str, str], path: str | Path, read: Callable[[str], Mapping[str, str | None]]
) -> dict[str, str]:
    """Return the environment over what the vendor's login command left in a file of the home directory.

    `read` turns the file's text into variables. A file that is not there or not understood counts as empty.
    """
    try:
        found = read(Path(env.get("HOME") or Path.home(), path).expanduser().read_text())
        left = {name: value for name, value in found.items() if isinstance(value, str) and value}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        left = {}
    return left | {name: value for name, value in env.items() if value}


_WORD: Final = re.compile(r"[A-Za-z0-9][\w.\-]*")


class Options:
    def __init__(self, given: Mapping[str, str] | None, known: Mapping[str, str], vendor: str) -> None:
        self._given = given or {}
        require_options(self._given, known, f"The {vendor} sandbox")

    @property
    def pace(self) -> dict[str, int]:
        """The values of `COMMON`."""
        return {"creates_at_once": self.number("creates_at_once", 16), "create_tries": self.number("create_tries", 6)}

    def number(self, name: str, default: int, *, least: int = 1, most: int | None = None) -> int:
        text = self._given.get(name, str(default))
        found = int(text) if text.isascii() and text.isdigit() else -1
        if found < least or (most is not None and found > most):
            upper = f" to {most}" if most is not None else ""
            raise _wrong(name, text, f"not a whole number from {least}{upper}")
        return found

    def limited(self, name: str, default: int, most_name: str, most: int, *, least: int = 1) -> tuple[int, int]:
        """What a box gets whose task asks for nothing, and the most that one may have."""
        highest = self.number(most_name, most, least=least)
        if name not in self._given:
            return min(default, highest), highest
        return self.number(name, default, least=least, most=highest), highest

    def word(self, name: str) -> str | None:
        """A name of the vendor's: of a region, an app."""
        if name not in self._given:
            return None
        return self._named(name, self._given[name])

    def words(self, name: str) -> tuple[str, ...]:
        """Several, with commas between."""
        if name not in self._given:
            return ()
        return tuple(self._named(name, part.strip()) for part in self._given[name].split(","))

    def _named(self, name: str, text: str) -> str:
        if not _WORD.fullmatch(text):
            raise _wrong(name, self._given[name], "not a name" if text else "empty")
        return text


def _wrong(name: str, text: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"--sandbox-option {name}={text}: {why}.")
