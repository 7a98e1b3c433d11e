"""Variables a task takes from the host: `${NAME}` and `${NAME:-default}` in its `env` tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from benchflow_core.contracts.tasks import Task, TaskEnvironment, VerifierSettings
from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass

__all__ = ["HostVariable", "requested_host_vars", "resolve_env"]

# Only a whole value is a template: "prefix-${NAME}" is text. The default may hold anything but a line break.
_TEMPLATE = re.compile(r"\$\{([^}:]+)(?::-(.*))?\}")


@dataclass(frozen=True, slots=True)
class HostVariable:
    """A host variable that a task asks for."""

    name: str
    required: bool
    """Without it the task cannot start: some place gives no default."""
    places: tuple[str, ...]
    """Where it is asked for, e.g. `environment.env.API_KEY`."""


def resolve_env(values: Mapping[str, str], host: Mapping[str, str], *, where: str) -> dict[str, str]:
    """Fill in templates from `host`. A variable that is set but empty counts as set."""
    resolved: dict[str, str] = {}
    missing: list[str] = []
    for key, value in values.items():
        template = _TEMPLATE.fullmatch(value)
        if template is None:
            resolved[key] = value
            continue
        name, default = template.groups()
        found = host.get(name, default)
        if found is None:
            missing.append(name)
        else:
            resolved[key] = found
    if missing:
        names = list(dict.fromkeys(missing))
        listed = ", ".join(f"'{name}'" for name in names)
        raise ConfigurationError(
            f"{where} asks for the host's {listed}, which {'is' if len(names) == 1 else 'are'} not set or not allowed.",
            remedy=f"Set and allow it: {' '.join(f'--allow-env {name}' for name in names)}",
            details={"variables": names},
        )
    return resolved


def requested_host_vars(task: Task) -> list[HostVariable]:
    """Every host variable the task asks for, sorted by name: what `--dry-run` lists."""
    places: dict[str, list[str]] = {}
    required: set[str] = set()
    for where, values in _env_tables(task):
        for key, value in values.items():
            template = _TEMPLATE.fullmatch(value)
            if template is None:
                continue
            name, default = template.groups()
            place = f"{where}.{key}"
            if place not in places.setdefault(name, []):
                places[name].append(place)
            if default is None:
                required.add(name)
    return [HostVariable(name, name in required, tuple(found)) for name, found in sorted(places.items())]


def _env_tables(task: Task) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "environment.env", task.environment.env
    yield from _verifier_tables("verifier", task.verifier)
    if task.solution:
        yield "solution.env", task.solution.env
    for step in task.steps:
        yield from _verifier_tables(f"steps.{step.name}.verifier", step.verifier)
        if step.solution and step.solution.env != (task.solution.env if task.solution else {}):
            yield f"steps.{step.name}.solution.env", step.solution.env


def _verifier_tables(where: str, settings: VerifierSettings) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield f"{where}.env", settings.env
    own: TaskEnvironment | None = settings.environment
    if own:
        yield f"{where}.environment.env", own.env
