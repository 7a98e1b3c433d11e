"""Reading an environment manifest, TOML or YAML; a mistake is answered with file, line and the nearest right word."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts.bounded_yaml import line_of, lines_of, load_yaml
from benchflow_core.errors import ConfigurationError

if TYPE_CHECKING:
    from benchflow_feature_world.schema import Environment

__all__ = ["SUFFIXES", "Manifest", "read_manifest"]

SUFFIXES: Final = (".toml", ".yaml", ".yml")
_MOST: Final = 1024 * 1024
_TABLE = "environment"


@dataclass(frozen=True)
class Manifest:
    """One environment, and where it was read."""

    path: Path
    environment: Environment

    @property
    def name(self) -> str:
        return self.environment.name

    @property
    def version(self) -> str | None:
        """As the file's name says it: `name@version.toml`."""
        return self.path.stem.partition("@")[2] or None

    @cached_property
    def env_hash(self) -> str:
        """Of what it says, whatever the format and the order it is said in."""
        text = json.dumps(self.environment.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read_manifest(path: Path) -> Manifest:
    """Nothing of it runs."""
    if path.is_dir():
        path = next((path / f"{_TABLE}{suffix}" for suffix in SUFFIXES if (path / f"{_TABLE}{suffix}").is_file()), path)
    try:
        if path.stat().st_size > _MOST:
            raise ConfigurationError(f"{path} is larger than a manifest can be ({_MOST // 1024} KiB).")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    data, places = _parse(path, text)
    table = data.get(_TABLE)
    for key in data:
        if key != _TABLE:
            raise ConfigurationError(
                f"{places((key,))}: unknown table '{key}'.", remedy=f"A manifest has one table, [{_TABLE}]."
            )
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{path}: there is no [{_TABLE}] table.", remedy="See docs/environments.md.")
    return Manifest(path, _validated(table, places))


def _parse(path: Path, text: str) -> tuple[Mapping[str, Any], Any]:
    if path.suffix.lower() in (".yaml", ".yml"):
        data, node = load_yaml(text, str(path))
        if not isinstance(data, Mapping):
            raise ConfigurationError(f"{path}: expected a mapping, found {type(data).__name__}.")
        lines = lines_of(node)
        return data, lambda at: f"{path}, line {line}" if (line := line_of(lines, at)) else str(path)
    try:
        return tomllib.loads(text), lambda at: _toml_place(path, text, at)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: {error}.") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: nested too deeply.") from None


def _validated(table: Mapping[str, Any], places: Any) -> Environment:
    from pydantic import ValidationError

    from benchflow_feature_world.schema import Environment

    try:
        return Environment.model_validate(table)
    except ValidationError as error:
        errors = error.errors()
        first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
        at = tuple(first["loc"])
        place = places((_TABLE, *at))
        if first["type"] == "extra_forbidden":
            raise ConfigurationError(f"{place}: unknown field '{at[-1]}'{_hint(at)}") from None
        said = first["msg"].removeprefix("Value error, ")
        where = ".".join(map(str, at))
        missing = first["type"] == "missing"
        what = f"'{where}' is missing" if missing else f"{where}: {said}" if where else said
        raise ConfigurationError(f"{place}: {what}.", remedy="See docs/environments.md.") from None


def _hint(at: tuple[Any, ...]) -> str:
    """The nearest known field beside the unknown one."""
    from benchflow_feature_world.schema import Environment

    model: Any = Environment
    for part in at[:-1]:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            model = next((a for a in getattr(annotation, "__args__", ()) if hasattr(a, "model_fields")), annotation)
    known = list(model.model_fields)
    close = get_close_matches(str(at[-1]), known, 1)
    return f", did you mean '{close[0]}'?" if close else f". Known: {', '.join(sorted(known))}."


def _toml_place(path: Path, text: str, at: tuple[Any, ...]) -> str:
    """The line of a key, as near as can be told: tomllib does not say."""
    keys = [part for part in at if isinstance(part, str)]
    index = next((part for part in at if isinstance(part, int)), None)
    first, last = 0, len(text.splitlines()) + 1
    if index is not None:
        tables = _lines(text, keys[: at.index(index)], header=True)
        if index < len(tables):
            first, last = tables[index], next((n for n in tables if n > tables[index]), last)
    for depth in range(len(keys), 0, -1):
        found = [number for number in _lines(text, keys[:depth]) if first <= number < last or index is None]
        if found:
            return f"{path}, line {found[0]}"
    return str(path)


def _lines(text: str, keys: list[str], *, header: bool = False) -> list[int]:
    """Lines where this key is set: by the header of its table, inside that, or inline."""
    table, found = "", []
    wanted, parent, full = keys[-1], ".".join(keys[:-1]), ".".join(keys)
    for number, line in enumerate(text.splitlines(), 1):
        head = re.match(r"\s*\[\[?\s*([^\]=]+?)\s*\]\]?\s*(#.*)?$", line)
        if head:
            table = head[1].replace('"', "").replace(" ", "")
            if table == full:
                found.append(number)
        elif not header and _sets(line, wanted) and (table == parent or parent.startswith(f"{table}.") or not table):
            found.append(number)
    return found


def _sets(line: str, key: str) -> bool:
    return re.search(rf"(^|[{{,\s])[\"']?{re.escape(key)}[\"']?\s*=", line) is not None
