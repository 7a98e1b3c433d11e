"""Arms: the cells of a matrix of agents, models, skill modes or scenes. What is compared runs in one job, mixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from typing import Any, Literal

from benchflow_core.contracts.scenes import Scene
from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass

__all__ = ["Arm", "Choice", "Matrix", "make_arms"]

SkillMode = Literal["no-skill", "with-skill", "self-gen"]


@dataclass(frozen=True)
class Choice:
    """A value of an axis with settings of its own, such as a variable that one model needs."""

    agent: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    agent_env: Mapping[str, str] = field(default_factory=dict)
    """Added to those of all arms."""
    agent_options: Mapping[str, str] = field(default_factory=dict)
    """Added to those of all arms."""

    def settings(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value}


Axis = Sequence[str] | Mapping[str, str | Choice]


@dataclass(frozen=True)
class Matrix:
    """Every combination is an arm. An axis is a list of names, or a mapping of a name of yours to the value."""

    agents: Axis = ()
    models: Axis = ()
    skill_modes: Sequence[SkillMode] = ()
    scenes: Mapping[str, Sequence[Scene]] = field(default_factory=dict)
    """A name of yours to scenes: who works in which order is what is compared."""


@dataclass(frozen=True)
class Arm:
    """One cell: what results call it, and which settings are in force there alone."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)


def make_arms(matrix: Matrix) -> list[Arm]:
    """Every combination, agents first. Only axes of more than one value show in the name."""
    agents = [("agent", *cell) for cell in _cells(matrix.agents, "agent")]
    models = [("model", *cell) for cell in _cells(matrix.models, "model")]
    modes = [("skill_mode", mode, {"skill_mode": mode}) for mode in matrix.skill_modes]
    if agents and any("agent" in settings for _, _, settings in models):
        raise ConfigurationError(
            "matrix: a model names its agent, and there is an axis of agents too.", remedy="Give one of them."
        )
    scenes = [("scenes", name, {"scenes": played}) for name, played in matrix.scenes.items()]
    if scenes and (agents or models):
        raise ConfigurationError(
            "matrix: scenes name their own agents and models, and there is an axis of those too.",
            remedy="Give one of them.",
        )
    axes = [axis for axis in (agents, models, modes, scenes) if axis]
    arms = [_arm(cells, axes) for cells in _product(axes)]
    names = [arm.name for arm in arms]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"matrix: two arms are called '{twice[0]}'.", remedy="Name each value once.")
    return arms


def _arm(cells: Sequence[tuple[str, str, Mapping[str, Any]]], axes: Sequence[Sequence[Any]]) -> Arm:
    shown = [name for (_, name, _), axis in zip(cells, axes, strict=True) if len(axis) > 1]
    settings: dict[str, Any] = {}
    for _, _, own in cells:
        for name, value in own.items():
            settings[name] = {**settings[name], **value} if name in settings and isinstance(value, Mapping) else value
    return Arm("+".join(shown) or "+".join(name for _, name, _ in cells), settings)


def _cells(axis: Axis, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(axis, Mapping):
        yield from ((name, {kind: name}) for name in axis)
        return
    for name, value in axis.items():
        settings = {kind: value} if isinstance(value, str) else value.settings()
        if kind not in settings:
            raise ConfigurationError(f"matrix: '{name}' names no {kind}.", remedy=f"Add {kind}: …")
        yield name, settings


def _product(axes: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    from itertools import product

    return product(*axes) if axes else iter(())
