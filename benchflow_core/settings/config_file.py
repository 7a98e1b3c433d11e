"""Settings with the place each came from, so that a mistake is answered with file, line and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from benchflow_core.contracts.bounded_yaml import lines_of, load_yaml
from benchflow_core.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

__all__ = ["ConfigFile", "complaint"]

At = tuple[Any, ...]
"""Where a value is: keys and indices from the top."""


class ConfigFile:
    """A mapping read from YAML, safe-loaded; or an empty one, for settings that come from the command line alone."""

    def __init__(self, path: str | Path | None = None, *, name: str = "the command line") -> None:
        self.path = None if path is None else Path(path)
        self.name = name if path is None else str(path)
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
        return self.name

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


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "literal_error": "{expected}",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
}


def complaint(
    error: ValidationError, values: Mapping[str, Any], kind: type[BaseModel], file: ConfigFile
) -> ConfigurationError:
    """Say what is wrong: a misspelt key before what it leaves missing; in a union, the member that came furthest."""
    found = [(e, tuple(_path(e["loc"], values))) for e in error.errors(include_url=False)]
    found.sort(key=lambda pair: (pair[0]["type"] not in _UNKNOWN, -len(pair[1])))
    first, at = found[0]
    key = first["loc"][-1]
    if first["type"] in _UNKNOWN:
        return file.unknown(key, known_keys(kind, at[:-1]), *at[:-1])
    if first["type"] == "missing":
        inside = _classes(kind, at)
        what = (
            f"a {inside[-1].__name__.lower()}" if at and inside else file.where() if file.path is None else "the file"
        )
        return ConfigurationError(f"{file.where(*at)}: {what} needs '{key}'.")
    if first["type"] == "value_error":
        cause = first["ctx"]["error"].__cause__ or first["ctx"]["error"]
        return ConfigurationError(f"{file.where(*at)}: {cause}", remedy=getattr(cause, "remedy", None))
    name = next((part for part in reversed(at) if isinstance(part, str)), str(key))
    wanted = {
        _WANTED[e["type"]].format(**e.get("ctx", {})) for e, place in found if place == at and e["type"] in _WANTED
    }
    told = f"must be {' or '.join(sorted(wanted))}" if wanted else first["msg"]
    return ConfigurationError(f"{file.where(*at)}: '{name}' {told}, not {first['input']!r}.")


def _path(loc: tuple[int | str, ...], values: Any) -> Iterator[Any]:
    """Yield the part of pydantic's location that is in the data; it also names members of unions."""
    for part in loc:
        inside = part in values if isinstance(values, dict) else isinstance(values, list) and isinstance(part, int)
        if inside:
            values = values[part]
            yield part


def known_keys(kind: type[BaseModel], at: At = ()) -> list[str]:
    """Return the keys that a mapping may have at a place of the settings."""
    names: list[str] = []
    for one in _classes(kind, at):
        names += _hints(one)
        for field in getattr(one, "model_fields", {}).values():
            names += [name for alias in field.metadata for name in getattr(alias, "names", ())]
    return names


def _classes(kind: Any, at: At) -> list[type]:
    """Return the classes of ours that a value at this place may be of; indices and names of the user's lead nowhere."""
    for part in at:
        inside = [hints[part] for one in _ours(kind) if part in (hints := _hints(one))]
        kind = inside[0] if inside else kind
    return _ours(kind)


def _hints(kind: type) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name in vars_of(kind)}


def vars_of(kind: Any) -> Iterable[str]:
    """Return the names of the fields of a model or a dataclass."""
    fields: Iterable[str] = getattr(kind, "model_fields", None) or kind.__dataclass_fields__
    return fields


def _ours(hint: Any) -> list[type]:
    """Return the models and dataclasses that a type mentions."""
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "model_fields")):
        return [hint]
    inner = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return [found for part in inner for found in _ours(part)]
