"""Reading a job: its file, `--config-override` over that, and the options of a command line over both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError  # noqa: TID253

from benchflow_core.contracts.bounded_yaml import load_yaml
from benchflow_core.contracts.settings import Option
from benchflow_core.contracts.settings_model import Settings
from benchflow_core.dotenv import user_env
from benchflow_core.errors import ConfigurationError, UsageError
from benchflow_core.plugins import registry
from benchflow_core.settings.compose import aliases, axes, composed, marked
from benchflow_core.settings.config_file import ConfigFile, complaint
from benchflow_core.settings.models import JobKeys, JobSettings, RetryConfig, job_keys

__all__ = ["job_schema", "read_settings"]

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}|\$([A-Za-z_]\w*)")
_TASKS = ("tasks_dir", "source", "dataset")


def read_settings(
    path: str | Path | None, overrides: Sequence[str], given: Mapping[str, Any]
) -> tuple[JobKeys, JobSettings]:
    """Return which tasks are meant and where results go, and the settings of the job."""
    file, model = ConfigFile(path), job_keys()
    values = _renamed(file, aliases(model))
    _rewrite_foreign(values, file, model)
    _apply_overrides(values, overrides, file)
    _expand(values, file)
    _apply_options(values, given, file, model)
    if path is None and "source" in values and "repo" not in values["source"]:
        raise ConfigurationError("--source-path and --source-ref say nothing without --source-repo.")
    try:
        checked = model.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        raise complaint(error, values, model, file) from None
    return _parted({name: getattr(checked, name) for name in checked.model_fields_set}, file)


def _parted(values: dict[str, Any], file: ConfigFile) -> tuple[JobKeys, JobSettings]:
    keys = JobKeys.model_construct(**{name: values.pop(name) for name in JobKeys.model_fields if name in values})
    if keys.max_retries is not None:
        if "retry" in values:
            raise ConfigurationError(f"{file.where('max_retries')}: 'max_retries' and 'retry' both say how often.")
        values["retry"] = RetryConfig(max_retries=keys.max_retries)
    if keys.loop_strategy is not None:
        values |= {"driver": keys.loop_strategy.strategy, "driver_params": keys.loop_strategy.params}
    return keys, composed(JobSettings).model_construct(**values)


def job_schema() -> dict[str, Any]:
    """Return the JSON Schema of a job file, for editors."""
    model = job_keys()
    schema = {**model.model_json_schema(), "title": "BenchFlow job"}
    for older, name in aliases(model).items():
        schema["properties"][older] = {**schema["properties"][name], "description": f"The older word for {name}."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _renamed(file: ConfigFile, older: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    words: dict[str, str] = {}
    for key, value in file.data.items():
        name = older.get(key, key)
        if name in values:
            raise ConfigurationError(f"{file.where(key)}: '{words[name]}' and '{key}' mean the same; give one.")
        words[name] = key
        if name != key:
            file.renamed(key, name)
        values[name] = value
    return values


def _rewrite_foreign(values: dict[str, Any], file: ConfigFile, model: type[Settings]) -> None:
    """Let the adapters rewrite a file that has another program's shape."""
    if values.keys() <= model.model_fields.keys() and not isinstance(values.get("sandbox"), dict):
        return
    for adapter in registry().all("adapter"):
        if adapter.spec.rewrite_job is not None:
            adapter.spec.rewrite_job(values, file)


def _expand(values: dict[str, Any], file: ConfigFile) -> None:
    """Replace `$NAME`, `${NAME}` and `${NAME:-default}` among the variables that a file gives to agents."""
    table = values.get("agent_env")
    if not isinstance(table, dict) or not any("$" in str(value) for value in table.values()):
        return
    host = user_env()
    for key, value in table.items():

        def found(match: re.Match[str], key: str = key) -> str:
            name, default = match[1] or match[3], match[2]
            if name not in host and default is None:
                raise ConfigurationError(
                    f"{file.where('agent_env', key)}: the variable '{name}' is not set.", remedy=f"export {name}=…"
                )
            return host.get(name, default or "")

        if isinstance(value, str):
            table[key] = _VARIABLE.sub(found, value)


# --- the command line -----------------------------------------------------------------------------------------


def _apply_overrides(values: dict[str, Any], texts: Iterable[str], file: ConfigFile) -> None:
    """Set `a.b=value` each, the value read as YAML; or a whole mapping, as `{…}` or in `@FILE`."""
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
    for key in at[:-1]:
        if isinstance(values, dict) and not isinstance(values.get(key), dict | list):
            values[key] = {}
        values = values[key] if isinstance(values, dict) else _item(values, key, name)
    if not isinstance(values, dict):
        _item(values, at[-1], name)
    values[at[-1]] = value


def _item(place: Any, key: Any, name: str) -> Any:
    if not isinstance(place, list) or not isinstance(key, int) or key >= len(place):
        raise UsageError(f"--config-override {name}: there is no '{key}' there.")
    return place[key]


def _apply_options(values: dict[str, Any], given: Mapping[str, Any], file: ConfigFile, model: type[Settings]) -> None:
    """Set the options that were typed, by the name of their field. Tables are added to, everything else is replaced."""
    if values.get("scenes") and (clash := [name for name in ("agent", "model", "prompts") if given.get(name)]):
        raise UsageError(
            f"{_spelling(clash[0], model)} would do nothing: the scenes of {file.path} name their agents, models and "
            "prompts."
        )
    if any(given.get(name) for name in _TASKS):
        refined = bool(given.get("source")) and "repo" not in given["source"]  # `--source-ref` is about the file's own
        for name in _TASKS:
            if name not in given and not (name == "source" and refined):
                values.pop(name, None)
    for name, value in given.items():
        file.places[(name,)] = _spelling(name, model)
        if name in axes(model):
            _set_axis(values, name, axes(model)[name], value)
        elif isinstance(value, Mapping) and isinstance(values.get(name, {}), Mapping):
            values[name] = {**(values.get(name) or {}), **value}
        else:
            values[name] = value


def _set_axis(values: dict[str, Any], name: str, axis: str, chosen: list[str]) -> None:
    """One value is a setting; more are an axis of the matrix. Either replaces what the file says on both."""
    values.pop(name, None)
    matrix = {key: value for key, value in (values.pop("matrix", None) or {}).items() if key != axis}
    if len(chosen) == 1:
        values[name] = chosen[0]
    else:
        matrix[axis] = chosen
    if matrix:
        values["matrix"] = matrix


def _spelling(name: str, model: type[Settings]) -> str:
    return marked(model, Option).get(name, Option()).spelling(name)
