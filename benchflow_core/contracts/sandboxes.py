"""Sandboxes: where a rollout runs. A provider is opened once per job; it prepares images and starts boxes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from benchflow_core.contracts.common import Availability, Check, CheckFn, Layer, Runtime, no_checks
from benchflow_core.quick import dataclass

__all__ = [
    "AccessView",
    "BoxInfo",
    "ByteStream",
    "Change",
    "DownloadLimits",
    "ExecResult",
    "HostEndpoint",
    "ImageRef",
    "ImageRequest",
    "Lease",
    "NetworkPolicy",
    "Process",
    "Resources",
    "Sandbox",
    "SandboxContext",
    "SandboxProvider",
    "SandboxSpec",
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


class ByteStream(Protocol):
    """A duplex byte stream."""

    async def read(self, limit: int = 65536) -> bytes:
        """At least one byte, or `b""` at the end."""

    async def write(self, data: bytes) -> None:
        """Returns once the data is accepted: back-pressure is the sender's."""

    async def close(self) -> None: ...


class Process(Protocol):
    """A running process with its own pipes; no terminal. What ACP runs on."""

    @property
    def pid(self) -> int | None:
        """In the box, where known."""

    async def read(self, limit: int = 65536) -> bytes:
        """Standard output: at least one byte, or `b""` at the end."""

    async def read_stderr(self, limit: int = 65536) -> bytes:
        """Standard error, likewise. The caller drains it."""

    async def write(self, data: bytes) -> None:
        """To standard input, with back-pressure. Raises `TransportError` when the process is gone."""

    async def close_stdin(self) -> None: ...

    async def wait(self) -> int:
        """The exit code; negative for a signal."""

    async def kill(self) -> None:
        """Ends the process and everything it started, and returns when they are gone. Safe to call again."""


@runtime_checkable
class Sandbox(Protocol):
    """One running box. Every method may raise `SandboxLost`. Paths in the box are absolute POSIX strings."""

    @property
    def info(self) -> BoxInfo: ...

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout: float | None = None,
        stdin: bytes | None = None,
        service: str = "main",
        view: AccessView | None = None,
        max_output: int = 16 * 1024 * 1024,
    ) -> ExecResult:
        """Run to the end. A time-out kills the whole tree and returns `timed_out=True`; cancelling this kills it too.

        `env` is added to the box's and may hold secrets: it never appears in another process's argv. A program that
        cannot be started gives exit code 127 (not found) or 126 (not executable) with the reason on stderr, as a
        shell does. What the command leaves in the background lives on.
        """

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        service: str = "main",
        view: AccessView | None = None,
    ) -> Process:
        """Start a duplex process."""

    async def upload(
        self, source: Path, target: str, *, user: str | None = None, mode: int | None = None, service: str = "main"
    ) -> None:
        """Copy a file, or the contents of a directory, to exactly `target`; parents are made. Owned by `user` (root).

        Symlinks inside `source` are copied as links. A link at `target` is replaced, not followed.
        """

    async def download(
        self, source: str, target: Path, *, limits: DownloadLimits | None = None, service: str = "main"
    ) -> None:
        """Copy a file or a directory's contents to exactly `target` on the host; a directory there is filled.

        Only regular files and directories arrive; links and devices are left out; nothing is written outside `target`.
        Raises `FileNotFoundError` when `source` is missing, `TransferRefused` over the limits, or where `source` itself
        is a link or a device: it is not followed.
        """

    async def processes(self, *, service: str = "main") -> list[int]:
        """Process ids, in the box, of everything that runs there beyond what the sandbox itself needs."""

    async def kill_all(self, *, service: str = "main") -> None:
        """Kill all of `processes`, whatever they do about it, and return when none is left. The box goes on.

        Programs started by `exec` and `spawn` end too. No program of the box is used for it: none is to be trusted.
        """

    async def snapshot(self, name: str, *, keep: bool = False) -> Snapshot:
        """Capture the file system (`Capability.SNAPSHOT`). The box goes on.

        `keep`: it outlives the provider. Its lease has neither term nor owner, and the name in `labels["name"]`.
        """

    async def restore(self, snapshot: Snapshot) -> None:
        """Put this box back (`Capability.RESTORE`): every process in it ends."""

    async def set_network(self, policy: NetworkPolicy) -> None:
        """Change the policy now (`Capability.NETWORK_DYNAMIC`)."""

    async def listening(self, *, service: str = "main") -> list[int]:
        """TCP ports something in the box listens on (`Capability.PORTS`)."""

    async def dial(self, port: int, *, service: str = "main") -> ByteStream:
        """Connect to a port on the box's loopback (`Capability.PORTS`)."""

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        """Make a host server reachable inside and return its base URL there, e.g. `http://127.0.0.1:41217`.

        Raise `NotImplementedError` to take the core's way: a multiplexer over `spawn` on the box's loopback.
        """

    async def logs(self, *, service: str = "main", tail: int = 65536) -> bytes:
        """What the box's own main process printed; for failure reports."""

    async def stop(self) -> None:
        """End every process and remove the box. Safe to call again; never raises for a box that is gone."""


class SandboxProvider(Protocol):
    """What a job holds open. Safe for concurrent use."""

    async def prepare(
        self, request: ImageRequest, layers: Sequence[Layer] = (), runtimes: Sequence[Runtime] = ()
    ) -> ImageRef:
        """Build or find the image, and make every layer. Cached by content; concurrent equal calls share one build."""

    async def start(self, image: ImageRef, request: StartRequest) -> Sandbox:
        """Start a box. On failure or cancellation nothing of it is left."""

    async def forget(self, snapshot: Snapshot) -> None:
        """Remove a snapshot that was not kept, once no box runs on it. Safe to call again."""

    async def close(self) -> None:
        """Stop what still runs and remove snapshots that were not kept."""


@dataclass(frozen=True, slots=True)
class SandboxContext:
    """What a provider is opened with."""

    work_dir: Path
    """A private folder of the job, removed afterwards."""
    cache_dir: Path
    """Shared between jobs and processes: lock what you write."""
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    """The user's environment and `.env`: where credentials are looked up."""
    options: Mapping[str, str] = field(default_factory=dict)
    """`--sandbox-option key=value`."""
    concurrency: int = 1
    build_concurrency: int = 1


def _refuse_nothing(options: Mapping[str, str], env: Mapping[str, str], request: ImageRequest) -> None:
    """No option and no image is known beforehand to be wrong."""


async def _no_leases() -> AsyncIterator[Lease]:
    return
    yield  # pragma: no cover


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """A kind of sandbox.

    Example::

        @hookimpl
        def benchflow_sandbox() -> SandboxSpec:
            def open_provider(context: SandboxContext) -> SandboxProvider:
                from benchflow_sandbox_e2b.provider import E2BProvider   # the SDK is imported here, not above
                return E2BProvider(context)
            return SandboxSpec(summary="E2B micro-VMs", open=open_provider, capabilities=frozenset({…}))
    """

    summary: str
    open: Callable[[SandboxContext], SandboxProvider]
    capabilities: Callable[[], frozenset[str]] | frozenset[str]
    """A callable where it depends on the host; called once and cheap."""
    available: Callable[[], Availability] = lambda: Availability(True)
    default_rank: int | None = None
    """Lower is preferred when the user names none; `None` is never chosen by itself."""
    check: CheckFn = no_checks
    list_leases: Callable[[], AsyncIterator[Lease]] = _no_leases
    """Everything of ours that exists there, live or left behind."""
    reap: Callable[[Lease], Awaitable[None]] | None = None
    max_concurrency: int | None = None
    on_host: bool = True
    """Its boxes use the CPUs and memory of this machine. False for a cloud: then they do not bound how many run."""
    requires: tuple[str, ...] = ()
    """Environment variables it needs, by name; the doctor reports present or missing."""
    refuse: Callable[[Mapping[str, str], Mapping[str, str], ImageRequest], None] = _refuse_nothing
    """Called while a job is planned, with `--sandbox-option` values, the user's environment and what the task asks for:
    raises `ConfigurationError` for an option that is wrong, `CapabilityMissing` for an image that cannot be made here.
    Cheap: it reads files, and says no word to a vendor."""
    caveats: Mapping[str, str] = field(default_factory=dict)
    """Capability to what is different here, in a few words: shown beside it in the documentation."""
    threat_model: str = ""
    """One or two sentences: what this wall keeps apart, and what it does not."""


def sandbox_checks(spec: SandboxSpec) -> list[Check]:
    """`available()` as a doctor line, followed by the spec's own."""
    found = spec.available()
    first = Check("available", "ok" if found.ok else "fail", found.reason, found.remedy)
    return [first, *spec.check()]
