"""Checks a spec against its own annotations: a wrong field is named when the plugin is loaded, not deep in a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

__all__ = ["wrong_fields"]

_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "Callable": callable,
    "CheckFn": callable,
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "tuple": lambda value: isinstance(value, tuple),
    "frozenset": lambda value: isinstance(value, frozenset),
    "Mapping": lambda value: isinstance(value, Mapping),
    "Path": lambda value: isinstance(value, Path),
    "None": lambda value: value is None,
}


def wrong_fields(spec: Any) -> list[str]:
    """One phrase per field whose value is not of the annotated type, outermost type only."""
    found = []
    for field in fields(spec):
        value = getattr(spec, field.name)
        if not any(_fits(value, part) for part in _alternatives(str(field.type))):
            found.append(f"{field.name} should be {field.type}, not {_shown(value)}")
    return found


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def _alternatives(annotation: str) -> list[str]:
    """Splits `A | B` at the top level only."""
    parts, depth = [""], 0
    for char in annotation:
        depth += (char in "[(") - (char in "])")
        if char == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _fits(value: Any, annotation: str) -> bool:
    if annotation.startswith("Literal["):
        from ast import literal_eval

        choices = literal_eval(f"({annotation.removeprefix('Literal[').removesuffix(']')},)")
        return value in choices
    fits = _TYPES.get(re.split(r"\W", annotation, maxsplit=1)[0])
    return fits is None or fits(value)
