"""What goes to a sandbox and comes back from it: requests, images, limits, views, results, snapshots, leases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from benchflow_core.quick import dataclass

__all__ = [
    "AccessView",
    "BoxInfo",
    "Change",
    "DownloadLimits",
    "ExecResult",
    "HostEndpoint",
    "ImageRef",
    "ImageRequest",
    "Lease",
    "NetworkPolicy",
    "Resources",
    "Snapshot",
    "StartRequest",
]


@dataclass(frozen=True, slots=True)
class Resources:
    """Limits of one box. `None`: not limited."""

    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    pids: int | None = None
    gpus: int = 0
    gpu_types: tuple[str, ...] = ()
    tpu: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """What a box may reach. Loopback always works; our gateway does too, through `expose_to_box`."""

    mode: Literal["public", "none", "allowlist"] = "public"
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """The file system a task asks for. One of `dockerfile`, `image`, `compose` is usually set."""

    context: Path | None = None
    """The build context: the task's `environment/` folder."""
    dockerfile: Path | None = None
    image: str | None = None
    """A prebuilt image's name."""
    compose: Path | None = None
    build_args: Mapping[str, str] = field(default_factory=dict)
    platform: str | None = None
    timeout: float = 600.0
    allow_substitute: bool = False
    """May the sandbox run on a file system other than the one asked for? Then `ImageRef.fidelity` says so."""
    base_override: str | None = None
    """Replaces the image of every FROM that is not a stage."""
    target: str | None = None
    """The stage of the Dockerfile to stop at; the last one where none is named."""
    alone: bool = False
    """Of a compose file only the main service's image, for a box without the others: a world beside the task."""


@dataclass(frozen=True, slots=True)
class ImageRef:
    """A prepared file system. JSON-safe: a plan can carry it to another host of the same provider."""

    ref: str
    fidelity: Literal["exact", "substituted"] = "exact"
    digest: str | None = None
    workdir: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    runtimes: Mapping[str, str] = field(default_factory=dict)
    """Runtime name to absolute path in the box."""
    main: tuple[str, ...] = ()
    """What the image itself would run: its entry point with its command."""
    notices: tuple[str, ...] = ()
    """What the user should know, one line each: `FROM ubuntu:24.04 substituted by the host's Debian 12`."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """The provider's own; the core only carries it."""


@dataclass(frozen=True, slots=True)
class StartRequest:
    """One box to start."""

    name: str
    """For humans and leases: job and rollout."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of every process in the box. Not for secrets: those travel in `exec(env=…)`."""
    workdir: str | None = None
    """`None`: the image's. Made where it is missing; `BoxInfo.workdir` says where it is."""
    resources: Resources = field(default_factory=Resources)
    network: NetworkPolicy = field(default_factory=NetworkPolicy)
    labels: Mapping[str, str] = field(default_factory=dict)
    """Owner, job, rollout, purpose; found again by `list_leases`."""
    expires_after: float = 6 * 3600.0
    """Seconds after which a box that nobody stopped may be reaped."""
    entrypoint: bool = True
    """False: the caller runs the image's entry point itself, and the sandbox does not."""
    revert: tuple[str, ...] = ()
    """Paths put back to what the image had, or removed where it had nothing, before any process of the box runs.
    Needs `Capability.CHANGES`; only for a box that starts from a snapshot."""
    carry_changes: bool = False
    """Of a box that starts from a snapshot: what the snapshot changed counts as changed in this box. Its own snapshots
    list that too, and undoing goes back to what the snapshot was taken against. Needs `Capability.CHANGES_CARRIED`."""
    access_views: bool = True
    """May its processes be given an `AccessView`? Where they will not be, a sandbox need not open anything for it."""


@dataclass(frozen=True, slots=True)
class BoxInfo:
    """What the caller needs to know about a started box."""

    id: str
    workdir: str
    default_user: str = "root"
    users: tuple[str, ...] = ("root",)
    notices: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    workdir_name: str | None = None
    """What the task calls `workdir`, where the box has no file system of its own to have it there."""
    limits_hit: tuple[str, ...] = ()
    """Limits that programs in the box have run into so far: `memory`, `pids`. None where it cannot be told."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The end of one command."""

    exit_code: int
    """Negative: killed by that signal."""
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    """The time was up and the whole process tree was killed."""
    truncated: bool = False
    """Output beyond the caller's limit was dropped from the middle."""
    oom_killed: bool = False


@dataclass(frozen=True, slots=True)
class AccessView:
    """What one process may see: enforced by the sandbox, `Capability.ACCESS_VIEW`."""

    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    """Exceptions below a read-only path."""


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """What comes out of a box is untrusted: files and directories only, beneath the target, within these."""

    max_bytes: int = 512 * 1024 * 1024
    max_entries: int = 100_000
    max_depth: int = 64


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs from the image."""

    path: str
    kind: Literal["added", "modified", "deleted"]
    type: Literal["file", "dir", "link", "other"] = "file"
    mode: int = 0
    """Permission bits, setuid included; 0 where deleted."""
    uid: int = 0
    size: int = 0
    target: str | None = None
    """Where a link points."""
    was: Literal["file", "dir", "link", "other"] | None = None
    """What the image has at this path, where it is of another type or deleted and that is known."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A captured file system. `image` starts a new box on it, as long as the provider is open or `keep` was set."""

    name: str
    image: ImageRef
    changes: tuple[Change, ...] | None = None
    """Against the image the box was started from, read off the captured state itself. Sorted by path. See also
    `StartRequest.carry_changes`."""
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class HostEndpoint:
    """A TCP server on the host (or anywhere this process can reach) that is to be shown inside a box."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Lease:
    """A box, image, network or volume of ours that exists at the vendor, whoever made it."""

    id: str
    kind: str
    """`box`, `image`, `network`, `volume` …"""
    labels: Mapping[str, str]
    created_at: float
    """Unix time."""
    expires_at: float | None = None
    owner_alive: bool | None = None
    """Whether the process that made it still runs here; `None` where that cannot be known."""
