"""A plugin as plain data: where it comes from, and everything in its spec that is not code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from benchflow_core.contracts.core import InstalledPlugin

__all__ = ["description"]


def description(plugin: InstalledPlugin) -> dict[str, Any]:
    """Return what `bench plugins show` prints. No check is run."""
    blocked = plugin.status == "blocked"
    reason = plugin.reason if plugin.spec is None else ""
    return {
        "kind": plugin.kind,
        "name": plugin.name,
        "summary": plugin.summary,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "problem": f"Blocked b{reason[1:]}" if blocked else reason,
        "aliases": list(plugin.aliases),
        "module": plugin.module,
        "requires_dist": list(plugin.requires),
        "functions": _functions(plugin.spec) if plugin.spec else [],
        "spec": _spec_data(plugin.spec) if plugin.spec else {},
    }


def _spec_data(spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = _data_of(spec)
    capabilities = getattr(spec, "capabilities", None)
    if callable(capabilities):
        try:
            found["capabilities"] = _data_of(capabilities())
        except Exception as error:
            found["capabilities"] = f"not known: {type(error).__name__}: {error}"
    found.pop("summary", None)
    return found


def _data_of(value: Any) -> Any:
    """Return what `json.dumps` takes. Functions are left out, bytes become their size."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Enum):
        return _data_of(value.value)
    if isinstance(value, str | Path):
        return str(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, Mapping):
        return {str(key): _data_of(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_data_of(item) for item in value), key=str)
    if isinstance(value, tuple | list):
        return [_data_of(item) for item in value]
    if isinstance(value, type):
        return value.__name__
    if is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _data_of(item) for name, item in found.items() if isinstance(item, type) or not callable(item)}
    return type(value).__name__


def _functions(spec: Any) -> list[str]:
    """Return the fields that hold functions of the plugin's own."""
    found = {field: getattr(spec, field.name) for field in fields(spec)}
    return [field.name for field, value in found.items() if callable(value) and value is not field.default]
