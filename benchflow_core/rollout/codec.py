"""Configs as JSON and back, by the types of their fields: one way for every dataclass of ours.

Variables whose name says secret are withheld: only their name is written, and reading takes the value from the user's
environment again.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from benchflow_core.errors import ConfigurationError
from benchflow_core.results.redact import secret_names

__all__ = ["code_in", "from_json", "to_json"]

_WITHHELD = "$withheld"
_ENVS = ("agent_env", "env")
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
_CODE = ("pre_agent_hooks", "user")
"""Fields that hold code: they have no written form."""


def to_json(value: Any, *, whole: bool = False) -> Any:
    """Plain JSON values. `whole`: with secrets, for what is never written down."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in _CODE}
        return {name: to_json(item, whole=True) if whole else _field(name, item) for name, item in found.items()}
    if isinstance(value, Mapping):
        return {str(key): to_json(item, whole=whole) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item, whole=whole) for item in value]
    return str(value) if isinstance(value, Path) else value


def code_in(value: Any) -> list[str]:
    """The fields in use that `to_json` cannot write."""
    return [name for name in _CODE if getattr(value, name, None)]


def _field(name: str, value: Any) -> Any:
    if name not in _ENVS or not isinstance(value, Mapping):
        return to_json(value)
    hidden = set(secret_names(value))
    return {key: {_WITHHELD: key} if key in hidden else item for key, item in value.items()}


def from_json(kind: Any, value: Any, env: Mapping[str, str]) -> Any:
    """The value as `kind`. Fields that this version does not know are refused: they meant something."""
    origin, inner = get_origin(kind), get_args(kind)
    if value is None:
        return None
    if isinstance(value, Mapping) and set(value) == {_WITHHELD}:
        return _given(str(value[_WITHHELD]), env)
    if origin in (Union, types.UnionType):
        return from_json(_choice(inner, value), value, env)
    if is_dataclass(kind):
        return _dataclass(kind, value, env)
    if origin is not None and isinstance(origin, type):
        if issubclass(origin, Mapping):
            return {key: from_json(inner[1], item, env) for key, item in value.items()}
        if issubclass(origin, tuple):
            return tuple(from_json(inner[0], item, env) for item in value)
        if issubclass(origin, Sequence):
            return [from_json(inner[0], item, env) for item in value]
    if kind in _WORDS and not _fits(kind, value):
        raise TypeError(f"must be {_WORDS[kind]}, not {value!r}")
    return Path(value) if kind is Path else value


def _fits(kind: type, value: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, str if kind is Path else (int, float) if kind is float else kind)


def _choice(options: Sequence[Any], value: Any) -> Any:
    """Of a union, the member that can hold a JSON value of this shape."""
    members = [o for o in options if o is not type(None)]
    for member in members:
        shape = get_origin(member) or member
        if not isinstance(shape, type):
            continue
        if isinstance(value, Mapping) and (is_dataclass(shape) or issubclass(shape, Mapping)):
            return member
        if isinstance(value, list) and issubclass(shape, Sequence) and shape is not str:
            return member
        if isinstance(value, str) and shape in (str, Path):
            return member
    return members[0] if len(members) == 1 else Any


def _dataclass(kind: Any, value: Mapping[str, Any], env: Mapping[str, str]) -> Any:
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind)}
    if unknown := sorted(set(value) - known):
        raise ConfigurationError(f"a {kind.__name__} has no '{unknown[0]}' in this version.")
    found = {}
    for name, item in value.items():
        try:
            found[name] = from_json(hints[name], item, env)
        except (TypeError, AttributeError) as error:
            raise ConfigurationError(f"'{name}' {error}.") from None
    return kind(**found)


def _given(name: str, env: Mapping[str, str]) -> str:
    if name not in env:
        raise ConfigurationError(f"{name} was given to the agent and is not written down.", remedy=f"Set {name} again.")
    return env[name]
