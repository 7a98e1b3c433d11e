"""`name:k=3,feedback=names`: how a driver and its parameters are written in one word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchflow_core.errors import ConfigurationError

__all__ = ["driver_params", "driver_word"]


_WANTED: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


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
