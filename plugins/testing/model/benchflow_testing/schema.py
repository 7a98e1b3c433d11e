"""The smallest value a JSON schema accepts: auxiliary calls and tools ask for more than a script says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["PLACEHOLDER", "fill", "instance"]

PLACEHOLDER = "placeholder"
_SIMPLE: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": True, "null": None, "array": []}


def instance(schema: Any, root: Any = None) -> Any:
    """A value for the schema; references are looked up in `root`."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping):
        return PLACEHOLDER
    if "$ref" in schema:
        return instance(_at(root, str(schema["$ref"])), root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return instance(schema[several][0], root)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    kind = str(kind or ("object" if "properties" in schema else "string")).lower()
    if kind == "object":
        wanted = schema.get("properties") or {}
        required = schema.get("required") or list(wanted)
        return {name: instance(part, root) for name, part in wanted.items() if name in required}
    return _SIMPLE.get(kind, PLACEHOLDER)


def fill(schema: Mapping[str, Any], arguments: dict[str, Any], note: str) -> dict[str, Any]:
    """Arguments with whatever else the schema requires; texts say `note`."""
    wanted = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in arguments:
            value = instance(wanted.get(name), schema)
            arguments[name] = note if value == PLACEHOLDER else value
    return arguments


def _at(root: Any, reference: str) -> Any:
    for key in reference.lstrip("#/").split("/"):
        root = root.get(key) if isinstance(root, Mapping) else None
    return root or {}
