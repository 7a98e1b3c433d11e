"""Update masks: which properties of a message a request sets, and which it resets by naming them without a value."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model.tree import EditError

__all__ = ["named", "update"]


def named(fields: Any, allowed: Collection[str], refused: Collection[str] = ()) -> list[str]:
    """The paths of a mask, `*` spelled out; the first name of each is one of `allowed`."""
    if not isinstance(fields, str) or not fields.strip():
        raise EditError("At least one field must be listed in 'fields'. (Use '*' to indicate all fields.)")
    paths: list[str] = []
    for part in (part.strip() for part in fields.split(",")):
        if part == "*":
            paths.extend(name for name in allowed if name not in refused)
            continue
        path = ".".join(_camel(name) for name in part.split("."))
        if path.partition(".")[0] in refused:
            raise EditError(f"Unallowed field: {path}")
        if path.partition(".")[0] not in allowed:
            raise EditError(f"Invalid field: {part}")
        paths.append(path)
    return paths


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def update(target: dict[str, Any], source: dict[str, Any], paths: Collection[str]) -> None:
    """Sets what `source` has at each path, and removes from `target` what it has not."""
    for path in paths:
        *above, name = path.split(".")
        into: Any = target
        value: Any = source
        for step in above:
            value = value.get(step) if isinstance(value, dict) else None
        for step in above:
            into = into.setdefault(step, {})
            if not isinstance(into, dict):
                raise EditError(f"Invalid field: {path}")
        found = value.get(name) if isinstance(value, dict) else None
        if found is None:
            into.pop(name, None)
        else:
            into[name] = deepcopy(found)
