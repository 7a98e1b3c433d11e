"""What has to be the same on both sides of a comparison, and whether it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchflow_core.evaluation.summary import team_of
from benchflow_core.quick import dataclass
from benchflow_core.results.checked import read_object
from benchflow_core.results.index import Row
from benchflow_core.rollout.config import RolloutConfig
from benchflow_core.rollout.finish import settings_json

__all__ = ["Difference", "differences"]

_TREATMENT: Final = frozenset(
    [
        "agent",
        "model",
        "roles",
        "reasoning_effort",
        "agent_options",
        "agent_env",
        "skill_mode",
        "skills_dir",
        "scenes",
        "scenes_as_written",
        "prompts",
        "arm",
        "agent_version",
    ]
)
"""What people compare. When one of these differs, that is the point of it."""
_BLOCKS: Final = frozenset({"image_fidelity", "verifier_isolation"})
"""Scores made under different ones are not on one scale."""
_FROM_ROW: Final = [
    "agent",
    "model",
    "arm",
    "skill_mode",
    "sandbox",
    "image_fidelity",
    "verifier_isolation",
    "core_version",
    "dataset_name",
    "dataset_version",
]
_NOT_SETTINGS: Final = frozenset(
    [
        "schema_version",
        "task_path",
        "task_digest",
        "source",
        "started_at",
        "attempt",
        "trial",
        "plugins",
        "environment",
        "dataset_name",
        "dataset_version",
        "core_version",
        "agent",
        "model",
        "arm",
        "skill_mode",
        "sandbox",
        "isolation",
        "roles",
    ]
)
"""Of `config.json`: what belongs to one rollout, and what the result says better."""
_PLUGIN: Final = "plugin "


@dataclass(frozen=True)
class Difference:
    """A field, and the values it had on each side; several where it varied within one."""

    field: str
    base: list[str]
    other: list[str]
    treatment: bool
    """Someone who compares agents changes this on purpose."""
    blocks: bool
    """Without being allowed there is no verdict."""


def differences(base: Sequence[Row], other: Sequence[Row]) -> list[Difference]:
    """Fields whose values differ between the sides, or that vary where they must not; treatments first."""
    left, right = _values(base), _values(other)
    found = []
    for name in left.keys() | right.keys():
        a, b = left.get(name, set()), right.get(name, set())
        if a != b or (len(a) > 1 and name in _BLOCKS):
            comes_along = name.startswith(_PLUGIN) and not (a and b)
            found.append(Difference(name, sorted(a), sorted(b), name in _TREATMENT or comes_along, name in _BLOCKS))
    return sorted(found, key=lambda d: (not d.treatment, not d.blocks, d.field))


def _values(rows: Sequence[Row]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for row in rows:
        for name, value in _facts(row):
            values.setdefault(name, set()).add(value)
    return values


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    """Of a rollout that was scored; one that was not says nothing about how scores were made."""
    if row.get("rewards") is None:
        return
    team = dict(zip(("agent", "model"), team_of(row), strict=True))
    for name in _FROM_ROW:
        if (value := team.get(name, row.get(name))) is not None:
            yield name, str(value)
    for plugin in (row.get("plugins") or "").split():
        name, _, version = plugin.partition("=")
        yield f"{_PLUGIN}{name}", version
    folder = Path(row["rollout_dir"])
    for name, value in {**_defaults(), **read_object(folder / "config.json")}.items():
        if name not in _NOT_SETTINGS:
            yield name, value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    lock = read_object(folder / "lock.json")
    agents = lock.get("agents")
    for agent in (one for one in agents.values() if isinstance(one, dict)) if isinstance(agents, dict) else ():
        layers = " ".join(map(str, agent["layers"])) if isinstance(agent.get("layers"), list) else ""
        yield "agent_version", f"{agent.get('name')} {agent.get('agent_version')} {layers}"
    for name in ("concurrency", "seed"):
        if lock.get(name) is not None:
            yield name, str(lock[name])
    if isinstance(lock.get("host"), dict):
        yield "host", f"{lock['host'].get('machine')}, {lock['host'].get('cpus')} CPUs"


@cache
def _defaults() -> dict[str, Any]:
    """What an older `config.json` does not say was not set."""
    return settings_json(RolloutConfig(task_path=Path()))
