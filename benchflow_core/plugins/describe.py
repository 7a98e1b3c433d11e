"""A plugin as plain data: where it comes from, and everything in its spec that is not code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from benchflow_core.plugins.index import Plugin, Problem, kind_of
from benchflow_core.plugins.registry import Registry

__all__ = ["data_of", "description", "problem_description"]


def description(registry: Registry, plugin: Plugin) -> dict[str, Any]:
    """What `bench plugins show` prints. No check is run."""
    block = registry.policy.block(plugin)
    outcome = None if block else registry.load(plugin)
    spec = outcome.spec if outcome else None
    problem = f"Blocked by {block.by}. {block.remedy}" if block else str((outcome and outcome.problem) or "")
    return {
        "kind": kind_of(plugin.group),
        "name": plugin.name,
        "summary": spec.summary if spec else plugin.distribution.summary,
        "distribution": plugin.distribution.name,
        "version": plugin.distribution.version,
        "problem": problem,
        "aliases": list(plugin.aliases),
        "module": plugin.module,
        "requires_dist": plugin.distribution.header("Requires-Dist"),
        "functions": _functions(spec) if spec else [],
        "spec": _spec_data(spec) if spec else {},
    }


def problem_description(problem: Problem) -> dict[str, Any]:
    """The same for an entry point that did not become a plugin."""
    owner = problem.distribution
    return {
        "kind": kind_of(problem.group),
        "name": problem.name,
        "summary": owner.summary,
        "distribution": owner.name,
        "version": owner.version,
        "problem": str(problem),
        "aliases": [],
        "module": "",
        "requires_dist": owner.header("Requires-Dist"),
        "functions": [],
        "spec": {},
    }


def _spec_data(spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = data_of(spec)
    capabilities = getattr(spec, "capabilities", None)
    if callable(capabilities):
        try:
            found["capabilities"] = data_of(capabilities())
        except Exception as error:
            found["capabilities"] = f"not known: {type(error).__name__}: {error}"
    found.pop("summary", None)
    return found


def data_of(value: Any) -> Any:
    """What `json.dumps` takes. Functions are left out, bytes become their size."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Enum):
        return data_of(value.value)
    if isinstance(value, str | Path):
        return str(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, Mapping):
        return {str(key): data_of(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((data_of(item) for item in value), key=str)
    if isinstance(value, tuple | list):
        return [data_of(item) for item in value]
    if isinstance(value, type):
        return value.__name__
    if is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: data_of(item) for name, item in found.items() if isinstance(item, type) or not callable(item)}
    return type(value).__name__


def _functions(spec: Any) -> list[str]:
    """The fields that hold functions of the plugin's own."""
    found = {field: getattr(spec, field.name) for field in fields(spec)}
    return [field.name for field, value in found.items() if callable(value) and value is not field.default]
