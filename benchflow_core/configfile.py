"""Settings with the place each came from, so that a mistake is answered with file, line and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from benchflow_core.contracts.bounded_yaml import lines_of, load_yaml
from benchflow_core.errors import ConfigurationError

__all__ = ["ConfigFile"]

At = tuple[Any, ...]
"""Where a value is: keys and indices from the top."""


class ConfigFile:
    """A mapping read from YAML, safe-loaded; or an empty one, for settings that come from the command line alone."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.lines: dict[At, int] = {}
        self.places: dict[At, str] = {}
        """Of values that are not the file's own."""
        self.data: dict[str, Any] = {}
        if self.path is not None:
            self._read(self.path)

    def _read(self, path: Path) -> None:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
        data, node = load_yaml(text, str(path))
        data = {} if node is None else data
        self.lines = lines_of(node)
        if not isinstance(data, dict):
            raise ConfigurationError(f"{path}: expected a mapping of settings, found {type(data).__name__}.")
        self.data = data

    def renamed(self, old: str, new: str) -> None:
        """What was said under an older word is found under the new one."""
        self.lines = {(new, *at[1:]): line for at, line in self.lines.items() if at[:1] == (old,)} | self.lines

    def where(self, *at: Any) -> str:
        """The place of a value, or of the nearest thing around it that has one."""
        for end in range(len(at), -1, -1):
            if at[:end] in self.places:
                return self.places[at[:end]]
            if at[:end] in self.lines:
                return f"{self.path}, line {self.lines[at[:end]]}"
        return str(self.path) if self.path else "the command line"

    def take(self, values: dict[str, Any], name: str, value: Any, *at: Any) -> None:
        """Set a setting to what the file says at another place; both together are refused."""
        if name in values:
            raise ConfigurationError(f"{self.where(*at)}: '{at[-1]}' and '{name}' mean the same; give one.")
        self.places[(name,)] = self.where(*at)
        values[name] = value

    def unknown(self, key: Any, known: Iterable[str], *at: Any) -> ConfigurationError:
        names = list(known)
        close = get_close_matches(str(key), names, 1)
        hint = f", did you mean '{close[0]}'?" if close else f". Known: {', '.join(sorted(names))}"
        return ConfigurationError(f"{self.where(*at, key)}: unknown field '{key}'{hint}")

    def refuse_unknown(self, value: Mapping[str, Any], known: Iterable[str], *at: Any) -> None:
        names = list(known)
        for key in value:
            if key not in names:
                raise self.unknown(key, names, *at)
