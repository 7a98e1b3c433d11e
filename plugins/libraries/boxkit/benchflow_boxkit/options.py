"""`--sandbox-option` values of a cloud, refused in one line where they cannot be meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from benchflow_boxkit.sandbox import require_options
from benchflow_core.errors import ConfigurationError

__all__ = ["COMMON", "Options"]

COMMON: Final = {
    "creates_at_once": "requests for new boxes under way at the same time (16)",
    "create_tries": "how often a box is asked for before the rollout fails (6)",
}
"""Options of every cloud, which a plugin adds to its own."""
_WORD: Final = re.compile(r"[A-Za-z0-9][\w.\-]*")


class Options:
    def __init__(self, given: Mapping[str, str] | None, known: Mapping[str, str], vendor: str) -> None:
        self._given = given or {}
        require_options(self._given, known, f"The {vendor} sandbox")

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
