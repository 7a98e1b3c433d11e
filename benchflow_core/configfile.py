"""YAML configs with the line of every key, so that a mistake is answered with file, line and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError

__all__ = ["ConfigFile"]


class ConfigFile:
    """A mapping read from YAML, safe-loaded; `lines` has the line of each key by its path."""

    def __init__(self, path: str | Path) -> None:
        import yaml

        self.path = Path(path)
        self.lines: dict[tuple[Any, ...], int] = {}
        try:
            text = self.path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"{self.path} cannot be read: {getattr(error, 'strerror', None) or error}."
            ) from error
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            self.data = loader.construct_document(node) if node is not None else {}
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f", line {mark.line + 1}" if mark else ""
            raise ConfigurationError(f"{self.path}{place}: {getattr(error, 'problem', None) or error}.") from error
        except RecursionError:
            raise ConfigurationError(f"{self.path}: nested too deeply.") from None
        self._note_lines(node, ())
        if not isinstance(self.data, dict):
            raise ConfigurationError(f"{self.path}: expected a mapping of settings, found {type(self.data).__name__}.")

    def _note_lines(self, node: Any, at: tuple[Any, ...]) -> None:
        if node is None:
            return
        self.lines.setdefault(at, node.start_mark.line + 1)
        if node.id == "mapping":
            for key, value in node.value:
                self.lines[(*at, key.value)] = key.start_mark.line + 1
                self._note_lines(value, (*at, key.value))
        elif node.id == "sequence":
            for index, value in enumerate(node.value):
                self._note_lines(value, (*at, index))

    def where(self, *at: Any) -> str:
        return f"{self.path}, line {self.lines.get(at, 1)}"

    def refuse_unknown(self, value: Mapping[str, Any], known: Iterable[str], *at: Any) -> None:
        names = list(known)
        for key in value:
            if key not in names:
                close = get_close_matches(str(key), names, 1)
                hint = f", did you mean '{close[0]}'?" if close else f". Known: {', '.join(sorted(names))}"
                raise ConfigurationError(f"{self.where(*at, key)}: unknown field '{key}'{hint}")

    def typed(self, value: Any, kinds: type | tuple[type, ...], *at: Any) -> Any:
        """The value if it is of one of the types; a bool is no number."""
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        if (isinstance(value, bool) and bool not in wanted) or not isinstance(value, wanted):
            names = " or ".join(
                {"str": "text", "dict": "a mapping", "list": "a list", "NoneType": "nothing"}.get(
                    k.__name__, f"a {k.__name__}"
                )
                for k in wanted
            )
            raise ConfigurationError(f"{self.where(*at)}: '{at[-1]}' must be {names}, not {value!r}.")
        return value
