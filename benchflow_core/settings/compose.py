"""Models of settings with the fields of installed features, and what the annotations of their fields say."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TypeVar, cast

from pydantic import BaseModel, create_model  # noqa: TID253

from benchflow_core.contracts.settings import Alias, Axis
from benchflow_core.errors import PluginError
from benchflow_core.plugins import Registry, registry
from benchflow_core.plugins.dotted import resolve

__all__ = ["aliases", "axes", "composed", "marked"]

M = TypeVar("M", bound=BaseModel)
A = TypeVar("A")
Features = tuple[tuple[str, type[BaseModel]], ...]
"""Who has settings, and their model."""


def composed(kind: type[M]) -> type[M]:
    """Return the model with the fields of installed features beside its own. Two that claim one key are refused."""
    return kind if kind in _made else cast("type[M]", _joined(kind, _of_features(registry())))


_made: set[type[BaseModel]] = set()


@cache
def _joined(kind: type[BaseModel], features: Features) -> type[BaseModel]:
    claimed = dict.fromkeys(kind.model_fields, "the core")
    for who, model in features:
        for name in model.model_fields:
            if name in claimed:
                raise PluginError(
                    f"{who} and {claimed[name]} both have a setting '{name}'.", remedy="Block one with -p no:NAME."
                )
            claimed[name] = who
    made = create_model(kind.__name__, __base__=(kind, *(model for _, model in features))) if features else kind
    _made.add(made)
    return made


@lru_cache(maxsize=8)
def _of_features(plugins: Registry) -> Features:
    features = [feature for feature in plugins.all("feature") if feature.spec.settings]
    return tuple((feature.who, resolve(feature.spec.settings, feature.who)) for feature in features)


def marked(kind: type[BaseModel], note: type[A]) -> dict[str, A]:
    """Return the fields that carry an annotation of a class, with it."""
    return {name: one for name, field in kind.model_fields.items() for one in field.metadata if isinstance(one, note)}


@cache
def aliases(kind: type[BaseModel]) -> dict[str, str]:
    """Return the older names of settings, each with the name it has now."""
    return {older: name for name, alias in marked(kind, Alias).items() for older in alias.names}


@cache
def axes(kind: type[BaseModel]) -> dict[str, str]:
    """Return the settings of which several values make an axis of the matrix, with the axis."""
    return {name: axis.name for name, axis in marked(kind, Axis).items()}
