"""What has to be the same on both sides of a comparison, and whether it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchflow_command_results.index import Row
from benchflow_core.contracts.core import ResultFiles
from benchflow_core.contracts.outcomes import team_of

__all__ = ["Difference", "differences"]

_FOUND: Final = frozenset({"roles", "scenes", "agent_version"})
"""What people compare beside settings. When one of these differs, that is the point of it."""
_BLOCKS: Final = frozenset({"image_fidelity", "verifier_isolation"})
"""Scores made under different ones are not on one scale."""
_FROM_ROW: Final = (
    "agent model arm skill_mode sandbox image_fidelity verifier_isolation core_version dataset_name dataset_version"
)
_OF_ONE_ROLLOUT: Final = (
    "schema_version task_path task_digest source started_at attempt trial plugins environment dataset_name "
    "dataset_version core_version agent model arm skill_mode sandbox isolation roles"
)
_NOT_SETTINGS: Final = frozenset(_OF_ONE_ROLLOUT.split())
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


def differences(files: ResultFiles, base: Sequence[Row], other: Sequence[Row]) -> list[Difference]:
    """Return the fields whose values differ between the sides, or vary where they must not; treatments first."""
    treatments = _FOUND | files.treatments()
    defaults = files.default_settings()  # what an older `config.json` does not say was not set
    left, right = (_values(files, rows, defaults) for rows in (base, other))
    found = []
    for name in left.keys() | right.keys():
        a, b = left.get(name, set()), right.get(name, set())
        if a != b or (len(a) > 1 and name in _BLOCKS):
            comes_along = name.startswith(_PLUGIN) and not (a and b)
            found.append(Difference(name, sorted(a), sorted(b), name in treatments or comes_along, name in _BLOCKS))
    return sorted(found, key=lambda d: (not d.treatment, not d.blocks, d.field))


def _values(files: ResultFiles, rows: Sequence[Row], defaults: Mapping[str, Any]) -> dict[str, set[str]]:
    """Each fact's values in the rollouts that were scored; the others say nothing about how scores were made."""
    values: dict[str, set[str]] = {}
    for row in rows:
        if row.get("rewards") is not None:
            folder = Path(row["rollout_dir"])
            config = {**defaults, **files.read_object(folder / "config.json")}
            for name, value in _facts(row, config, files.read_object(folder / "lock.json")):
                values.setdefault(name, set()).add(value)
    return values


def _facts(row: Row, config: Mapping[str, Any], lock: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    team = dict(zip(("agent", "model"), team_of(row), strict=True))
    for name in _FROM_ROW.split():
        if (value := team.get(name, row.get(name))) is not None:
            yield name, str(value)
    for plugin in (row.get("plugins") or "").split():
        name, _, version = plugin.partition("=")
        yield f"{_PLUGIN}{name}", version
    for name, value in config.items():
        if name not in _NOT_SETTINGS:
            yield name, value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    agents = lock.get("agents")
    for agent in (one for one in agents.values() if isinstance(one, dict)) if isinstance(agents, dict) else ():
        layers = " ".join(map(str, agent["layers"])) if isinstance(agent.get("layers"), list) else ""
        yield "agent_version", f"{agent.get('name')} {agent.get('agent_version')} {layers}"
    for name in ("concurrency", "seed"):
        if lock.get(name) is not None:
            yield name, str(lock[name])
    if isinstance(lock.get("host"), dict):
        yield "host", f"{lock['host'].get('machine')}, {lock['host'].get('cpus')} CPUs"
