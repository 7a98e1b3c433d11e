"""Built-in worlds as data: a JSON file with `$name` where a value depends on the seed, and scenarios made of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from string import Template
from typing import Any

from benchflow_claw_kit.service import Scenario
from benchflow_claw_kit.store import Store

__all__ = ["read_world", "scenarios"]

Load = Callable[[Store, Mapping[str, Any]], None]
World = Callable[[Random], Mapping[str, Any]]


def read_world(file: Path, **values: object) -> dict[str, Any]:
    """Return the content of a JSON file with each `$name` replaced. `$$` is a dollar sign; a text that is nothing but
    `$name` becomes the value itself, of whatever type."""
    world: dict[str, Any] = _filled(json.loads(file.read_text("utf-8")), values)
    return world


def _filled(part: Any, values: Mapping[str, object]) -> Any:
    if isinstance(part, dict):
        return {name: _filled(value, values) for name, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, values) for value in part]
    if not isinstance(part, str) or "$" not in part:
        return part
    return values[part[1:]] if part[1:] in values else Template(part).substitute(values)


def scenarios(load: Load, *worlds: World) -> dict[str, Scenario]:
    """Return a service's scenarios: each world under its function's name and with its docstring."""
    return {world.__name__: _scenario(load, world) for world in worlds}


def _scenario(load: Load, world: World) -> Scenario:
    def build(store: Store, seed: int) -> None:
        load(store, world(Random(seed)))

    build.__doc__ = world.__doc__
    return build
