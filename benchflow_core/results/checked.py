"""Results as they lie on disk: data that anybody may have written, so every reader gets them checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchflow_core.results.models import fields_of_type

__all__ = ["NotAResult", "check_result", "read_object", "read_result", "readable_result", "unreadable"]

_TEXTS: Final = fields_of_type(str)
_NUMBERS: Final = fields_of_type(int)
_TABLES: Final = {
    "rewards": None,
    "timing": None,
    "agent_result": ("total_tokens", "n_input_tokens", "n_output_tokens", "cost_usd"),
    "verdict": ("number", "of"),
}
"""Mappings, and which of their values are numbers: `None` is all of them."""
_ERRORS: Final = ("error_info", "verifier_error_info")
_LISTS: Final = {
    "flags": str,
    "notices": str,
    "findings": dict,
    "tests": dict,
    "scenes": dict,
    "step_results": dict,
    "plugins": dict,
}
_LARGEST: Final = 2**63
_LONGEST_MESSAGE: Final = 400


class NotAResult(ValueError):
    """The file is JSON and something else than a result."""


def read_result(folder: Path) -> dict[str, Any]:
    """The `result.json` of a rollout. Raises `ValueError` that names the field which is not of its published type."""
    value = json.loads((folder / "result.json").read_bytes())
    if not isinstance(value, dict) or "task_name" not in value:
        raise NotAResult("it is no result of ours")
    check_result(value)
    return value


def readable_result(folder: Path) -> dict[str, Any]:
    """The `result.json` of a rollout, or in its place an unscored one that says what is wrong with it."""
    try:
        return read_result(folder)
    except (OSError, ValueError, RecursionError) as error:
        return unreadable(folder, str(error) or type(error).__name__)


def unreadable(folder: Path, why: str) -> dict[str, Any]:
    message = f"result.json cannot be read: {why}"[:_LONGEST_MESSAGE]
    info = {"kind": "infrastructure", "code": "unreadable_result", "message": message, "retryable": False}
    name = folder.name
    return {"task_name": name.rpartition("__")[0] or name, "rollout_name": name, "error": message, "error_info": info}


def read_object(path: Path) -> dict[str, Any]:
    """A file of JSON that is a mapping, or an empty one where it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        value = json.loads(path.read_bytes())
        return value if isinstance(value, dict) else {}
    return {}


def check_result(value: Mapping[str, Any]) -> None:
    """Raise `ValueError` for the first field that has not its published type."""
    if not isinstance(value.get("task_name"), str):
        _refuse("task_name", value.get("task_name"), "a text")
    for name in _TEXTS:
        if not isinstance(value.get(name), str | None):
            _refuse(name, value[name], "a text")
    for name in _NUMBERS:
        _number(name, value.get(name))
    for name, numbers in _TABLES.items():
        table = _table(name, value.get(name))
        for key in table if numbers is None else numbers:
            if numbers is None and table[key] is None:
                _refuse(f"{name}.{key}", None, "a number")
            _number(f"{name}.{key}", table.get(key))
    for name in _ERRORS:
        info = _table(name, value.get(name))
        for key in ("kind", "code") if info else ():
            if not isinstance(info.get(key), str):
                _refuse(f"{name}.{key}", info.get(key), "a text")
    for name, kind in _LISTS.items():
        if not isinstance(value.get(name), list | None) or any(not isinstance(v, kind) for v in value.get(name) or ()):
            _refuse(name, value[name], f"a list of {'texts' if kind is str else 'mappings'}")
    for plugin in value.get("plugins") or ():
        if not all(isinstance(plugin.get(key), str) for key in ("kind", "name", "version")):
            _refuse("plugins", plugin, "a list of plugins with kind, name and version")
    for role, about in _table("roles", value.get("roles")).items():
        for key in ("agent", "model"):
            if not isinstance(_table(f"roles.{role}", about).get(key), str | None):
                _refuse(f"roles.{role}.{key}", about[key], "a text")


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict | None):
        _refuse(name, value, "a mapping")
    return value or {}


def _number(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(name, value, "a number")
    if not abs(value) < _LARGEST:  # nor is NaN
        _refuse(name, value, "a number of ordinary size")


def _refuse(name: str, value: Any, expected: str) -> None:
    shown = type(value).__name__ if isinstance(value, int) and abs(value) >= _LARGEST else repr(value)[:60]
    raise ValueError(f"it is not of the published shape: '{name}' is {shown}, and not {expected}")
