"""Environments and services: the world an agent acts in. Packages ship manifests, services and state backends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.common import CheckFn, Layer, McpServer, Runtime, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import ModelEndpoint
    from benchflow_core.contracts.sandboxes import HostEndpoint, Sandbox

__all__ = ["EnvironmentSpec", "HostServiceContext", "ServiceContext", "ServiceSpec", "StateBackend"]


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
    """`scenario`, `seed` and whatever else `services: ["name?key=value"]` says."""
    program: str = ""
    """What to run: the name or the path of `ServiceSpec.program` in the box."""
    db: str = ""
    """`{data_dir}/{name}.db`: where a service that has one file keeps it."""


@dataclass(frozen=True, slots=True)
class HostServiceContext:
    """What a service that runs on the host, outside every box, works with."""

    name: str
    workdir: str
    """Of the task, in the agent's box."""
    copy_workspace: Callable[[Path], Awaitable[None]]
    """Brings a copy of the working directory to a folder on the host: files and folders only, within limits. There is
    no way back into the box."""
    ask: Callable[[Sequence[tuple[str, str]], str], Awaitable[str]]
    """(talk of `("user" | "assistant", text)`, system prompt) to the answer of the service's model, through the
    gateway, so that its tokens count; only with `ServiceSpec.needs_model`."""
    instruction: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    log: Callable[[str], None] = lambda line: None


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A server that the agent talks to at a port of its own loopback, and cannot otherwise reach.

    Either a program (`command`), which runs in a box beside the agent's, or a server of this process (`serve`).

    Example::

        @hookimpl
        def benchflow_service() -> ServiceSpec:
            return ServiceSpec(summary="mock Gmail", program="claw-gmail", port=9001,
                               distribution="benchflow-service-claw-gmail",
                               command=lambda c: (c.program, "--db", c.db, "serve", "--port", str(c.port)))
    """

    summary: str
    command: Callable[[ServiceContext], tuple[str, ...]] | None = None
    port: int = 0
    program: str = ""
    """Started only where this is installed; its name in a task's Dockerfile is how it is detected."""
    seeded_in: Callable[[Path], tuple[str, ...] | None] | None = None
    """(a task's build context) to the paths at which its Dockerfile lays the service's database, or none where the task
    does not mean this service. The state is found at these paths by a verifier too."""
    health_path: str = "/health"
    ready_timeout: float = 30.0
    layers: tuple[Layer, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    mcp: Callable[[ServiceContext], McpServer] | None = None
    """Offered to the agent as an MCP server."""
    needs_model: bool = False
    """The service asks a model: the one that `?model=` names, else the rollout's. Only for one on the host."""
    check: CheckFn = no_checks
    distribution: str = ""
    """A distribution that is installed here and has `program` as a console script: it and everything it requires are
    shown in the box, read-only, and need no network. Pure Python only."""
    seed: Callable[[ServiceContext], tuple[str, ...]] | None = None
    """Fills `db` from `options["scenario"]`, a built-in name or the path of a file, before the service starts."""
    diff: Callable[[ServiceContext, str], tuple[str, ...]] | None = None
    """(context, path of the state at the start) to a command that prints what changed as JSON; works on files alone."""
    serve: Callable[[HostServiceContext], AbstractAsyncContextManager[HostEndpoint]] | None = None
    """Runs on the host while it is open; the port is shown in the agent's box."""
