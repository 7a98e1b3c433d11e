"""Settings as JSON and back: `job.json`, `config.json`, `lock.json`, the items of an executor, `--run-config-out`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError  # noqa: TID253

from benchflow_core.contracts.settings import OfOneRollout, Option, Recorded, Treatment
from benchflow_core.errors import ConfigurationError
from benchflow_core.settings.compose import composed, marked
from benchflow_core.settings.config_file import ConfigFile, complaint
from benchflow_core.settings.models import RolloutConfig, RolloutSettings

__all__ = [
    "code_in",
    "dump",
    "leave_out",
    "read",
    "read_recorded",
    "recorded",
    "recorded_names",
    "recorded_treatments",
    "settings_of",
    "whole",
    "with_whole_paths",
]

S = TypeVar("S", bound=RolloutSettings)
Replace = Callable[[str, str], Any]
"""From the name and the value of a secret variable to what is written for it; None: nothing."""


def leave_out(name: str, value: str) -> None:
    """Write nothing for a secret."""


def whole(name: str, value: str) -> str:
    """Write the secret itself, for what never reaches a disk."""
    return value


def dump(settings: BaseModel, secret: Replace | None = None) -> dict[str, Any]:
    """Return the settings as plain JSON values without what is code; a secret is written as its name alone."""
    context = {"secret": secret} if secret else None
    return settings.model_dump(mode="json", context=context, warnings=False)


def read(kind: type[S], values: Mapping[str, Any], env: Mapping[str, str], where: str) -> S:
    """Return what `dump` wrote. Settings that this version does not know are refused: they meant something."""
    model = composed(kind)
    if unknown := sorted(values.keys() - model.model_fields.keys()):
        raise ConfigurationError(f"{where}: a {kind.__name__} has no '{unknown[0]}' in this version.")
    try:
        return model.model_validate_json(json.dumps(values), context={"env": env})
    except ValidationError as error:
        raise complaint(error, values, model, ConfigFile(name=where)) from None


def code_in(settings: BaseModel) -> list[str]:
    """Return the settings in use that hold Python code and are not written."""
    return [name for name, field in type(settings).model_fields.items() if field.exclude and getattr(settings, name)]


@cache
def recorded_names(kind: type[RolloutConfig]) -> dict[str, str]:
    """Return every setting that `config.json` holds, with its name there."""
    names = {name: name for name, field in kind.model_fields.items() if not field.exclude}
    names |= {name: note.name for name, note in marked(kind, Recorded).items()}
    own = RolloutConfig.model_fields.keys() - RolloutSettings.model_fields.keys() | marked(kind, OfOneRollout).keys()
    return {name: key for name, key in names.items() if name not in own and name != "dataset"}


def recorded_treatments() -> frozenset[str]:
    """Return the settings that people compare, by their names in `config.json`."""
    kind = composed(RolloutConfig)
    return frozenset(recorded_names(kind)[name] for name in marked(kind, Treatment))


def settings_of(config: RolloutConfig) -> dict[str, Any]:
    """Return every setting by its own name, without secrets and without what is this one rollout's alone."""
    written = dump(config, leave_out)
    return {name: written[name] for name in recorded_names(type(config))}


def with_whole_paths(config: RolloutConfig) -> dict[str, Any]:
    """Return what `settings_of` does with paths that can be read from another working directory."""
    paths = {name for name, option in marked(type(config), Option).items() if option.path}
    return {
        name: str(Path(value).expanduser().resolve()) if name in paths and value else value
        for name, value in settings_of(config).items()
    }


def recorded(config: RolloutConfig) -> dict[str, Any]:
    """Return every setting by the name it has in `config.json`, without secrets."""
    written = dump(config, leave_out)
    return {key: written[name] for name, key in recorded_names(type(config)).items()}


def read_recorded(asked: Mapping[str, Any], where: str) -> RolloutConfig:
    """Return the config of a rollout out of its `config.json`; what an older one does not say was not set."""
    kind = composed(RolloutConfig)
    values = {name: asked[key] for name, key in recorded_names(kind).items() if key in asked}
    return read(RolloutConfig, {**values, "task_path": asked["task_path"]}, {}, where)
