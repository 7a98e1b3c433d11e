"""Arms: the cells of a matrix of agents, models, skill modes or scenes. What is compared runs in one job, mixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from itertools import product
from typing import Annotated, Any, Literal

from benchflow_core.contracts.scenes import Scene
from benchflow_core.contracts.settings import Secret
from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass

__all__ = ["Arm", "Choice", "Matrix", "SkillMode", "make_arms"]

SkillMode = Literal["no-skill", "with-skill", "self-gen"]
Cell = tuple[str, dict[str, Any]]
"""What an arm is called for a value, and the settings of that value."""


@dataclass(frozen=True)
class Choice:
    """A value of an axis with settings of its own, such as a variable that one model needs."""

    agent: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    agent_env: Annotated[Mapping[str, str], Secret()] = field(default_factory=dict)
    """Added to those of all arms."""
    agent_options: Mapping[str, str] = field(default_factory=dict)
    """Added to those of all arms."""

    def settings(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value}


AxisValues = Sequence[str] | Mapping[str, str | Choice]


@dataclass(frozen=True)
class Matrix:
    """Every combination is an arm. An axis is a list of names, or a mapping of a name of yours to the value."""

    agents: AxisValues = ()
    models: AxisValues = ()
    skill_modes: Sequence[SkillMode] = ()
    scenes: Mapping[str, Sequence[Scene]] = field(default_factory=dict)
    """A name of yours to scenes: who works in which order is what is compared."""


@dataclass(frozen=True)
class Arm:
    """One cell: what results call it, and which settings are in force there alone."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)


def make_arms(matrix: Matrix) -> list[Arm]:
    """Return every combination, agents first. Only axes of more than one value show in the name."""
    agents, models = list(_cells(matrix.agents, "agent")), list(_cells(matrix.models, "model"))
    none: dict[str, Any] = {"skills_dir": None}  # skills_dir is for the arms with skills
    modes: list[Cell] = [(m, {"skill_mode": m, **(none if m == "no-skill" else {})}) for m in matrix.skill_modes]
    scenes: list[Cell] = [(name, {"scenes": played}) for name, played in matrix.scenes.items()]
    if agents and any("agent" in settings for _, settings in models):
        raise _both("a model names its agent, and there is an axis of agents too")
    if scenes and (agents or models):
        raise _both("scenes name their own agents and models, and there is an axis of those too")
    axes = [axis for axis in (agents, models, modes, scenes) if axis]
    arms = [_arm(cells, axes) for cells in product(*axes)] if axes else []
    names = [arm.name for arm in arms]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigurationError(f"matrix: two arms are called '{twice[0]}'.", remedy="Name each value once.")
    return arms


def _both(what: str) -> ConfigurationError:
    return ConfigurationError(f"matrix: {what}.", remedy="Give one of them.")


def _arm(cells: Sequence[Cell], axes: Sequence[Sequence[Cell]]) -> Arm:
    shown = [name for (name, _), axis in zip(cells, axes, strict=True) if len(axis) > 1]
    settings: dict[str, Any] = {}
    for _, own in cells:
        settings |= {name: joined(settings.get(name), value) for name, value in own.items()}
    return Arm("+".join(shown) or "+".join(name for name, _ in cells), settings)


def joined(shared: Any, own: Any) -> Any:
    """Return an arm's own value of a setting; a table is added to the one that all arms share."""
    return {**(shared or {}), **own} if isinstance(own, Mapping) else own


def _cells(axis: AxisValues, kind: str) -> Iterator[Cell]:
    if not isinstance(axis, Mapping):
        yield from ((name, {kind: name}) for name in axis)
        return
    for name, value in axis.items():
        settings = {kind: value} if isinstance(value, str) else value.settings()
        if kind not in settings:
            raise ConfigurationError(f"matrix: '{name}' names no {kind}.", remedy=f"Add {kind}: …")
        yield name, settings
