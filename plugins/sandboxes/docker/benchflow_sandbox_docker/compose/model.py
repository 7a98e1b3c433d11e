"""What a compose file asks for, once it is understood and allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from benchflow_core.contracts.quick import dataclass

__all__ = ["Build", "ComposeService", "Copy", "Dependency", "Health", "Project", "Shared"]

MAIN = "main"
Condition = Literal["service_started", "service_healthy", "service_completed_successfully"]


@dataclass(frozen=True, slots=True)
class Build:
    """An image to build; both paths lie inside the task."""

    context: Path
    dockerfile: Path
    args: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """Docker's semantics. `argv` is what is run in the service."""

    argv: tuple[str, ...]
    interval: float = 30.0
    timeout: float = 30.0
    retries: int = 3
    start_period: float = 0.0
    start_interval: float = 5.0


@dataclass(frozen=True, slots=True)
class Dependency:
    """Another service that has to be that far before this one starts."""

    service: str
    condition: Condition = "service_started"
    required: bool = True


@dataclass(frozen=True, slots=True)
class Copy:
    """A file or folder of the task that the service finds at `target`: its own copy, never the task's own file."""

    source: Path
    target: str
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """A volume of this rollout, mounted at `target`."""

    volume: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class ComposeService:
    """One container to be."""

    name: str
    image: str | None = None
    build: Build | None = None
    entrypoint: tuple[str, ...] | None = None
    """`None`: the image's."""
    command: tuple[str, ...] | None = None
    """`None`: the image's; for `main`, one that only stays alive."""
    environment: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Dependency, ...] = ()
    health: Health | None = None
    health_off: bool = False
    copies: tuple[Copy, ...] = ()
    shared: tuple[Shared, ...] = ()
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Network to the extra names of the service there."""
    no_network: bool = False
    joins: str | None = None
    """The service whose network namespace it shares."""
    expose: tuple[int, ...] = ()
    working_dir: str | None = None
    user: str | None = None
    hostname: str | None = None
    extra_hosts: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    cap_drop: tuple[str, ...] = ()
    read_only: bool = False
    restart: bool = False
    cpus: float | None = None
    memory: int | None = None
    """Bytes."""
    pids: int | None = None
    shm_size: int | None = None
    ulimits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    platform: str | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """The services that run, in an order in which each comes after those it needs."""

    services: tuple[ComposeService, ...]
    volumes: tuple[str, ...] = ()
    internal: frozenset[str] = frozenset()
    """Networks without a way out."""
    notices: tuple[str, ...] = ()

    @property
    def main(self) -> ComposeService:
        return next(service for service in self.services if service.name == MAIN)

    @property
    def sidecars(self) -> tuple[ComposeService, ...]:
        return tuple(service for service in self.services if service.name != MAIN)
