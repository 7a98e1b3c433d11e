"""Values that are several in one word: `k=v`, `a,b`, and a driver with its parameters, `name:k=3,feedback=names`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from benchflow_core.errors import ConfigurationError, UsageError

__all__ = ["driver_params", "driver_word", "key_values", "names"]

_ONE_VALUE: Final = re.compile(r"[a-z]+:(?!:)")
_WANTED: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def key_values(pairs: Iterable[str], option: str, expected: str = "KEY=VALUE") -> dict[str, str]:
    """Return the `K=V` pairs of a repeatable option."""
    result = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"{option} '{pair}': expected {expected}.")
        result[key] = value
    return result


def names(values: Iterable[str]) -> list[str]:
    """Split the values of an option that may be repeated or list several; `kind:text` is one, commas and all."""
    found = [part for v in values for part in ([v] if _ONE_VALUE.match(v) else v.split(","))]
    return list(dict.fromkeys(part.strip() for part in found if part.strip()))


def driver_word(word: str) -> tuple[str, dict[str, str]]:
    """The name, and the parameters as they are written."""
    name, _, rest = word.partition(":")
    if not name.strip():
        raise ConfigurationError(f"'{word}' names no driver.", remedy="Expected NAME or NAME:KEY=VALUE,….")
    params: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, separator, value = part.partition("=")
        if not separator:
            raise ConfigurationError(f"driver '{word}' is not NAME:KEY=VALUE,….")
        if key.strip() in params:
            raise ConfigurationError(f"driver '{word}' says twice what '{key.strip()}' is.")
        params[key.strip()] = value.strip()
    return name, params


def driver_params(word: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The driver's own defaults, then what the config says, then what the word says; each of its default's type."""
    name, written = driver_word(word)
    said = {**given, **written}
    unknown = sorted(set(said) - set(known))
    if unknown:
        can = ", ".join(f"{key}={value}" for key, value in known.items()) or "none"
        raise ConfigurationError(f"driver '{name}' has no parameter '{unknown[0]}'.", remedy=f"It has: {can}.")
    return {**known, **{key: _typed(name, key, value, known[key]) for key, value in said.items()}}


def _typed(driver: str, key: str, value: Any, default: Any) -> Any:
    if default is None or type(value) is type(default) or (type(default) is float and type(value) is int):
        return value
    try:
        if not isinstance(value, str):
            raise ValueError(value)
        if isinstance(default, bool):
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[value.lower()]
        return type(default)(value)
    except (ValueError, KeyError):
        wanted = _WANTED.get(type(default), f"a {type(default).__name__}")
        raise ConfigurationError(f"driver '{driver}': {key}={value} is not {wanted}.") from None
