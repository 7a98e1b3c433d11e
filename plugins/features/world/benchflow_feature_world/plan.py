"""What world a rollout gets: its manifest and services, found and checked before anything starts."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts import (
    Capability,
    ImageRequest,
    Layer,
    McpServer,
    Runtime,
    ServiceContext,
    StateBackend,
    Task,
)
from benchflow_core.errors import CapabilityMissing, ConfigurationError, TaskError
from benchflow_feature_world.choice import ChosenServices, choose_services
from benchflow_feature_world.find import find_manifest
from benchflow_feature_world.manifest import SUFFIXES, Manifest
from benchflow_feature_world.probe import Probe, command_probe, http_probe, tcp_probe
from benchflow_feature_world.services import (
    DATA,
    Service,
    known_services,
    service_of,
    services_in,
)
from benchflow_feature_world.state import SQLITE, state_backend

if TYPE_CHECKING:
    from benchflow_core.contracts import LoadedPlugin
    from benchflow_feature_world.installed import Plugins

__all__ = ["PlannedService", "WorldPlan", "plan_world"]

_DB: Final = re.compile(r"(?:^|\s)--db[ =](\S+)")
_PIN: Final = "environment_manifest"


@dataclass(frozen=True)
class PlannedService:
    """One program that the framework starts in the world's box, where it is installed."""

    name: str
    port: int
    program: str
    argv: Callable[[ServiceContext], tuple[str, ...]]
    health_path: str = "/health"
    ready_timeout: float | None = None
    db: str | None = None
    service: Service | None = None
    """The installed plugin that brings the program, seeds it and tells what changed."""

    @property
    def layers(self) -> tuple[Layer, ...]:
        if self.service is None:
            return ()
        from benchflow_feature_world.layer import distribution_layer

        spec = self.service.spec
        return (*spec.layers, *((distribution_layer(spec.distribution),) if spec.distribution else ()))

    @property
    def runtimes(self) -> tuple[Runtime, ...]:
        return self.service.spec.runtimes if self.service else ()


@dataclass(frozen=True)
class WorldPlan:
    """Everything about it that can be known beforehand."""

    name: str
    env_hash: str
    services: tuple[PlannedService, ...]
    backend: StateBackend
    state_paths: tuple[str, ...]
    manifest: Manifest | None = None
    pinned_by: str = "option"
    """`option`, `task`, or `services` where there is no manifest."""
    hosted: tuple[Service, ...] = ()
    """Servers of this process."""
    own_box: bool = True
    """In a box of its own, which the agent cannot enter; otherwise beside the agent in its box."""
    probes: tuple[Probe, ...] = ()
    ready_timeout: float = 120.0
    notices: tuple[str, ...] = ()
    choice: ChosenServices | None = None
    """The part of it that was asked for; none: all."""
    seeds: Mapping[str, Path] = field(default_factory=dict)
    """Path in the world's box to a file of the task."""
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A service's database to the other paths where the task's image holds it: a verifier finds the state there too."""

    @property
    def ports(self) -> tuple[int, ...]:
        """Of the world's box, shown in the agent's."""
        own = self.manifest.environment.ports if self.manifest else ()
        return tuple(dict.fromkeys((*own, *(service.port for service in self.services))))

    @property
    def persistent(self) -> bool:
        return self.manifest is not None and self.manifest.environment.isolation == "persistent"

    @property
    def image_starts(self) -> bool:
        return self.manifest is not None and self.manifest.environment.owns_lifecycle

    @property
    def needs_box(self) -> bool:
        """A world of host services alone has none."""
        return bool(self.services) or self.image_starts

    def layers(self) -> tuple[Layer, ...]:
        return tuple({layer.key: layer for service in self.services for layer in service.layers}.values())

    def runtimes(self) -> tuple[Runtime, ...]:
        return tuple(dict.fromkeys(r for service in self.services for r in service.runtimes))

    def image_request(self, task: ImageRequest) -> ImageRequest:
        """The world's image: the task's own where that selects the world, else the manifest's."""
        has_own = task.dockerfile is not None or task.image is not None or task.compose is not None
        own = replace(task, alone=task.compose is not None)
        if self.manifest is None:
            return own
        env = self.manifest.environment
        if has_own and env.task_selection.mechanism == "image":
            return own
        return ImageRequest(
            image=env.image or env.base_image, timeout=task.timeout, allow_substitute=task.allow_substitute
        )

    def mcp_servers(self) -> tuple[McpServer, ...]:
        """Offered to the agent."""
        found = [(s.service, s.port) for s in self.services if s.service] + [(s, s.port) for s in self.hosted]
        return tuple(
            service.spec.mcp(ServiceContext(port=port, data_dir=DATA, options=service.options))
            for service, port in found
            if service.spec.mcp is not None
        )

    def loaded(self) -> list[LoadedPlugin]:
        """The plugins that take part."""
        services = [s.service for s in self.services if s.service] + list(self.hosted)
        return [service.loaded for service in services if service.loaded is not None]

    def stamp(self) -> dict[str, Any]:
        """For config.json, result.json and lock.json."""
        manifest = self.manifest
        return {
            "name": self.name,
            "env_hash": self.env_hash,
            "manifest": str(manifest.path) if manifest else None,
            "version": manifest.version if manifest else None,
            "pinned_by": self.pinned_by,
            "services": [s.name for s in self.services] + [s.name for s in self.hosted],
            "placement": "own-box" if self.own_box else "agents-box",
            "chosen": {"name": self.choice.name, "tools": list(self.choice.tools)} if self.choice else None,
            "isolation": "persistent" if self.persistent else "per_task",
            "state": {"kind": self.backend.kind, "paths": list(self.state_paths)},
            "layers": [layer.key for layer in self.layers()],
        }


def plan_world(
    task: Task,
    *,
    services: Sequence[str | Service],
    manifest: str | None,
    choice: ChosenServices | None = None,
    plugins: Plugins,
    env: Mapping[str, str],
    capabilities: frozenset[str],
) -> WorldPlan | None:
    """None where the task asks for no world and nobody else does."""
    found, pinned_by, notices = _manifest(task, manifest, plugins, env)
    named = [service_of(word, plugins) for word in services]
    if found is None and (text := task.environment.dockerfile) and text.is_file():
        programs = {service.spec.program for service in named}
        named += [service for service in services_in(text, plugins) if service.spec.program not in programs]
    if found is None and not named:
        if choice is not None:
            raise ConfigurationError(
                f"task '{task.name}' has no environment, so --state has nothing to choose from.",
                remedy="Name one with --environment-manifest, or services with --service.",
            )
        return None
    planned = _planned(found, named, plugins)
    _refuse_clashes(planned, named)
    hosted = tuple(s for s in named if s.spec.serve is not None)
    left_out: tuple[PlannedService, ...] = ()
    if choice is not None:
        everything, (planned, hosted) = planned, _chosen(choice, found, planned, hosted)
        left_out = tuple(p for p in everything if p not in planned)
    backend, paths = _state(found, planned, plugins)
    paths = tuple(path for path in paths if path not in {p.db for p in left_out})
    own_box = Capability.PORTS in capabilities
    if not own_box and (planned or found is not None):
        notices.append("the sandbox opens no ports of a box: the world's services run in the agent's own box.")
    if backend.kind == "sandbox" and Capability.RESTORE not in capabilities:
        raise CapabilityMissing("state.kind 'sandbox' needs a sandbox with the capability restore.")
    return WorldPlan(
        name=found.name if found else "+".join(s.name for s in named),
        env_hash=found.env_hash if found and not named and choice is None else _hash(found, planned, hosted),
        services=planned,
        backend=backend,
        state_paths=paths,
        manifest=found,
        pinned_by=pinned_by if found else "services",
        hosted=hosted,
        own_box=own_box,
        probes=tuple(probe for probe in _probes(found) if probe.port not in {p.port for p in left_out}),
        ready_timeout=found.environment.readiness.timeout_sec if found else 30.0,
        notices=tuple(notices),
        choice=choice,
        seeds=_seeds(task, planned),
        places=_places(task, planned),
    )


def _manifest(
    task: Task, asked: str | None, plugins: Plugins, env: Mapping[str, str]
) -> tuple[Manifest | None, str, list[str]]:
    """The user's choice before the task's pin; that it differs is said."""
    pin = _pin(task)
    if asked is None:
        if pin is None:
            return None, "services", []
        try:
            return find_manifest(pin, plugins, env, task.path), "task", []
        except ConfigurationError as error:
            raise TaskError(f"task '{task.name}' pins an environment: {error.message}", remedy=error.remedy) from error
    found = find_manifest(asked, plugins, env)
    if pin is None:
        return found, "option", []
    try:
        same = find_manifest(pin, plugins, env, task.path).env_hash == found.env_hash
    except ConfigurationError:
        same = False
    said = [] if same else [f"the task pins environment '{pin}'; '{asked}' was asked for and is used."]
    return found, "option", said


def _pin(task: Task) -> str | None:
    """`environment_manifest` in the task's metadata, or a manifest in its `environment/` folder."""
    said = task.metadata.get(_PIN)
    if isinstance(said, str) and said:
        return said
    for suffix in SUFFIXES:
        path = task.path / "environment" / f"environment{suffix}"
        if path.is_file():
            return str(path)
    return None


def _planned(found: Manifest | None, named: Sequence[Service], plugins: Plugins) -> tuple[PlannedService, ...]:
    planned: list[PlannedService] = []
    by_program = {s.spec.program: s for s in known_services(plugins).values() if s.spec.program}
    for entry in found.environment.services if found else ():
        try:
            program = shlex.split(entry.command)[0]
        except (ValueError, IndexError) as error:
            raise ConfigurationError(f"{found.path if found else ''}: service '{entry.name}': {error}.") from None
        db = _DB.search(entry.command)
        shell = ("sh", "-c", f"exec {entry.command}")
        planned.append(
            PlannedService(
                entry.name, entry.port, program, lambda _, argv=shell: argv, entry.health_path,  # type: ignore[misc]
                db=db[1] if db else None, service=by_program.get(program),
            )
        )  # fmt: skip
    for service in named:
        spec = service.spec
        if spec.serve is not None or any(p.program == spec.program and p.port == service.port for p in planned):
            continue
        if spec.command is None or spec.needs_model:
            raise ConfigurationError(f"service '{service.name}' can neither be started in a box nor on the host.")
        planned.append(
            PlannedService(
                service.name, service.port, spec.program, spec.command, spec.health_path, spec.ready_timeout,
                service.db, service,
            )
        )  # fmt: skip
    return tuple(planned)


def _chosen(
    choice: ChosenServices, found: Manifest | None, planned: Sequence[PlannedService], hosted: Sequence[Service]
) -> tuple[tuple[PlannedService, ...], tuple[Service, ...]]:
    if found is not None and found.environment.owns_lifecycle:
        raise ConfigurationError(
            f"environment '{found.name}' starts its services itself: --state cannot leave any of them out."
        )

    def names(service: PlannedService | Service) -> list[str]:
        inner = service.service if isinstance(service, PlannedService) else None
        return [service.name, *([inner.name, service.program] if inner and isinstance(service, PlannedService) else [])]

    services: list[PlannedService | Service] = [*planned, *hosted]
    both = choose_services(choice, services, names)
    return tuple(p for p in planned if p in both), tuple(s for s in hosted if s in both)


def _refuse_clashes(planned: Sequence[PlannedService], named: Sequence[Service]) -> None:
    ports: dict[int, str] = {}
    hosted = [(s.name, s.port) for s in named if s.spec.serve is not None]
    for name, port in [*((p.name, p.port) for p in planned), *hosted]:
        if port in ports:
            raise ConfigurationError(
                f"services '{ports[port]}' and '{name}' both want port {port}.", remedy=f"Write {name}:PORT."
            )
        ports[port] = name


def _state(
    found: Manifest | None, planned: Sequence[PlannedService], plugins: Plugins
) -> tuple[StateBackend, tuple[str, ...]]:
    if found is not None and "state" in found.environment.model_fields_set:
        state = found.environment.state
        backend = state_backend(state.kind, plugins)
        paths = state.paths or tuple(p.db for p in planned if p.db)
        return backend, paths
    return SQLITE, tuple(dict.fromkeys(p.db for p in planned if p.db))


def _probes(found: Manifest | None) -> tuple[Probe, ...]:
    if found is None:
        return ()
    ready = found.environment.readiness
    return (*map(http_probe, ready.http), *map(tcp_probe, ready.tcp), *map(command_probe, ready.command))


def _seeds(task: Task, planned: Sequence[PlannedService]) -> dict[str, Path]:
    """`environment/<service>.db`, or `<service>.scenario.json`, laid where the service looks."""
    folder = task.environment.context or task.path / "environment"
    seeds: dict[str, Path] = {}
    for service in planned:
        for name in dict.fromkeys((service.name, service.service.name if service.service else service.name)):
            database, scenario = folder / f"{name}.db", folder / f"{name}.scenario.json"
            if database.is_file() and service.db:
                seeds.setdefault(service.db, database)
            elif scenario.is_file() and service.db:
                seeds.setdefault(f"{service.db}.scenario.json", scenario)
    return seeds


def _places(task: Task, planned: Sequence[PlannedService]) -> dict[str, tuple[str, ...]]:
    """Return where the task's image holds the databases, besides the path at which the service keeps them."""
    folder = task.environment.context or task.path / "environment"
    known = [(p.db, p.service.spec.seeded_in) for p in planned if p.db and p.service]
    found = {db: tuple(p for p in seeded_in(folder) or () if p != db) for db, seeded_in in known if seeded_in}
    return {db: places for db, places in found.items() if places}


def _hash(found: Manifest | None, planned: Sequence[PlannedService], hosted: Sequence[Service]) -> str:
    rows = [
        [p.name, p.port, p.program, p.health_path, *(dict(p.service.options).items() if p.service else ())]
        for p in planned
    ]
    rows += [[s.name, s.port, "host", "", dict(s.options)] for s in hosted]
    text = json.dumps([found.env_hash if found else None, DATA, rows], sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
