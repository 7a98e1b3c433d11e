"""What the command line says over a job file: options win, and `--config-override` reaches what has no option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchflow_core.configfile import ConfigFile
from benchflow_core.contracts.bounded_yaml import load_yaml
from benchflow_core.errors import UsageError

__all__ = ["apply_options", "apply_overrides"]

AXES = {"agent": "agents", "model": "models", "skill_mode": "skill_modes"}
"""The setting, and its axis in a matrix."""
_TASKS = ("tasks_dir", "source", "dataset")
_MAPPINGS = ("agent_env", "agent_options", "sandbox_options", "gateway_options", "executor_options", "limits")


def apply_overrides(values: dict[str, Any], texts: Iterable[str], file: ConfigFile) -> None:
    """`a.b=value` each, the value read as YAML; or a whole mapping, as `{…}` or in `@FILE`."""
    for text in texts:
        if text.startswith("@"):
            _overlay(values, ConfigFile(text[1:]).data, (), file, f"--config-override {text}")
        elif text.startswith("{"):
            data, _ = load_yaml(text, "--config-override")
            _overlay(values, data, (), file, "--config-override")
        else:
            name, sign, value = text.partition("=")
            if not sign or not name.strip():
                raise UsageError(f"--config-override '{text}': expected NAME=VALUE, such as agent_env.LEVEL=3.")
            at = tuple(int(part) if part.isdigit() else part for part in name.strip().split("."))
            _set(values, at, load_yaml(value, f"--config-override {name}")[0] if value else "", name)
            file.places[at] = f"--config-override {name}"


def _overlay(values: dict[str, Any], over: Mapping[str, Any], at: tuple[Any, ...], file: ConfigFile, by: str) -> None:
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(values.get(key), dict):
            _overlay(values[key], value, (*at, key), file, by)
        else:
            values[key] = value
            file.places[(*at, key)] = by


def _set(values: Any, at: tuple[Any, ...], value: Any, name: str) -> None:
    place = values
    for key in at[:-1]:
        if isinstance(place, dict):
            if not isinstance(place.get(key), dict | list):
                place[key] = {}
            place = place[key]
        else:
            place = _item(place, key, name)
    if isinstance(place, dict):
        place[at[-1]] = value
    else:
        _item(place, at[-1], name)
        place[at[-1]] = value


def _item(place: Any, key: Any, name: str) -> Any:
    if not isinstance(place, list) or not isinstance(key, int) or key >= len(place):
        raise UsageError(f"--config-override {name}: there is no '{key}' there.")
    return place[key]


def apply_options(values: dict[str, Any], given: Mapping[str, Any], file: ConfigFile) -> None:
    """Options that were typed, by the name of their field. Tables are added to, everything else is replaced."""
    if values.get("scenes") and (clash := [name for name in ("agent", "model", "prompts") if given.get(name)]):
        raise UsageError(
            f"{_option(clash[0])} would do nothing: the scenes of {file.path} name their agents, models and prompts."
        )
    if any(given.get(name) for name in _TASKS):
        for name in _TASKS:
            if name not in given and not (name == "source" and _only_refines(given)):
                values.pop(name, None)
    for name, value in given.items():
        file.places[(name,)] = _option(name)
        if name in AXES:
            _set_axis(values, name, value)
        elif name in _MAPPINGS or name == "source":
            values[name] = {**(values.get(name) or {}), **value}
        else:
            values[name] = value


def _only_refines(given: Mapping[str, Any]) -> bool:
    """`--source-ref` alone is about the repository that the file names."""
    return bool(given.get("source")) and "repo" not in given["source"]


def _set_axis(values: dict[str, Any], name: str, chosen: list[str]) -> None:
    """One value is a setting; more are an axis of the matrix. Either replaces what the file says on both."""
    values.pop(name, None)
    matrix = dict(values.get("matrix") or {})
    matrix.pop(AXES[name], None)
    if len(chosen) == 1:
        values[name] = chosen[0]
    else:
        matrix[AXES[name]] = chosen
    values.pop("matrix", None)
    if matrix:
        values["matrix"] = matrix


def _option(name: str) -> str:
    plain = {"include_tasks": "include", "exclude_tasks": "exclude", "prompts": "prompt"}.get(name, name)
    return f"--{plain.replace('_', '-')}"
