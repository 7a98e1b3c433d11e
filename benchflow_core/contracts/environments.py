"""Environments and services: the world an agent acts in. Packages ship manifests, services and state backends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.common import CheckFn, Layer, McpServer, Runtime, no_checks

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import ModelEndpoint
    from benchflow_core.contracts.sandboxes import Sandbox

__all__ = ["EnvironmentSpec", "ServiceContext", "ServiceSpec", "StateBackend"]


@dataclass(frozen=True, slots=True)
class StateBackend:
    """How the state of one kind of world is captured and put back inside a box."""

    kind: str
    """As a manifest's `state.kind` names it: `sqlite`, `files` …"""
    snapshot: Callable[[Sandbox, Sequence[str], str], Awaitable[Mapping[str, Any]]]
    """(box, paths, snapshot id) to whatever `restore` needs."""
    restore: Callable[[Sandbox, Sequence[str], Mapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """A set of manifests and state backends.

    Example::

        @hookimpl
        def benchflow_environment() -> EnvironmentSpec:
            return EnvironmentSpec(summary="ClawsBench worlds", manifests=Path(__file__).parent / "manifests")
    """

    summary: str
    manifests: Path | None = None
    """A folder of `name@version.toml` files."""
    state_backends: tuple[StateBackend, ...] = ()
    check: CheckFn = no_checks


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a service's command line is made from."""

    port: int
    data_dir: str
    runtimes: Mapping[str, str] = field(default_factory=dict)
    prefix: str | None = None
    endpoint: ModelEndpoint | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A process that runs in the box beside the agent and that the agent talks to.

    Example::

        @hookimpl
        def benchflow_service() -> ServiceSpec:
            return ServiceSpec(summary="mock Gmail", program="claw-gmail", port=9001,
                               command=lambda c: ("claw-gmail", "serve", "--port", str(c.port)))
    """

    summary: str
    command: Callable[[ServiceContext], tuple[str, ...]]
    port: int
    program: str
    """Started only where this is installed; its name in a task's Dockerfile is how it is detected."""
    health_path: str = "/health"
    ready_timeout: float = 30.0
    layers: tuple[Layer, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    mcp: Callable[[ServiceContext], McpServer] | None = None
    """Offered to the agent as an MCP server."""
    needs_model: bool = False
    check: CheckFn = no_checks
