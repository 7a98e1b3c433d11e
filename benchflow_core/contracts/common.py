"""Small types shared by every kind of plugin."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.sandboxes import Sandbox


class Capability(StrEnum):
    """What a sandbox can do, an agent needs, or a task asks for.

    A plan is refused before anything starts when something asked for is not declared. Plugins may use their own
    strings beside these; a capability is compared as text.
    """

    USERS = "users"
    """Processes can run as any user named in the box, not only as one."""
    SNAPSHOT = "snapshot"
    """`Sandbox.snapshot` captures the whole file system, and a new box can start from it."""
    SNAPSHOT_COMPOSE = "snapshot-compose"
    """Of a task with several services, `snapshot` captures `main` with its volumes and tmpfs; a box on it, started
    while the first one lives, reaches the same services."""
    RESTORE = "restore"
    """`Sandbox.restore` puts a running box back to a snapshot."""
    CHANGES = "changes"
    """`Snapshot.changes` lists what differs from the image, and `StartRequest.revert` undoes chosen paths."""
    CHANGES_CARRIED = "changes-carried"
    """`StartRequest.carry_changes`: a box on a snapshot has the image below as its image."""
    PORTS = "ports"
    """`Sandbox.listening` and `Sandbox.dial` reach servers inside the box."""
    ACCESS_VIEW = "access-view"
    """`AccessView` is enforced for a process: read-only and hidden paths."""
    NETWORK_PUBLIC = "network-public"
    """The box can reach the internet."""
    NETWORK_NONE = "network-none"
    """The box can be cut off, loopback excepted."""
    NETWORK_ALLOWLIST = "network-allowlist"
    """Only named hosts can be reached, enforced outside the agent's power."""
    NETWORK_DYNAMIC = "network-dynamic"
    """`Sandbox.set_network` changes the policy of a running box."""
    IMAGE_BUILD = "image-build"
    """A Dockerfile is built, FROM included; `SandboxSpec.caveats` says what is different."""
    IMAGE_PREBUILT = "image-prebuilt"
    """A named image is used as it is."""
    COMPOSE = "compose"
    """Several services from a compose file."""
    LIMIT_CPU = "limit-cpu"
    LIMIT_MEMORY = "limit-memory"
    LIMIT_PIDS = "limit-pids"
    LIMIT_STORAGE = "limit-storage"
    GPU = "gpu"
    TPU = "tpu"
    WINDOWS = "windows"


@dataclass(frozen=True, slots=True)
class Availability:
    """Can this plugin be used here and now? Cheap to find out: no network, no SDK import."""

    ok: bool
    reason: str = ""
    """One line: why not, or on which terms (`user namespaces only: one uid`)."""
    remedy: str = ""
    """The command or setting that makes it available."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `bench plugins doctor`. Never carries the value of a credential."""

    name: str
    status: Literal["ok", "warn", "fail", "skip"]
    detail: str = ""
    remedy: str = ""


class LoadedPlugin(Protocol):
    """A plugin that was imported and works."""

    @property
    def name(self) -> str: ...

    @property
    def who(self) -> str:
        """For messages: `sandbox 'e2b' of benchflow-sandbox-e2b 1.0`."""

    @property
    def spec(self) -> Any: ...

    @property
    def kind(self) -> str: ...

    @property
    def aliases(self) -> tuple[str, ...]: ...

    def stamp(self) -> dict[str, str]:
        """Kind, name, distribution and version, as results record them."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A language runtime that something in the box needs, e.g. `Runtime("python", "3.9")`.

    The sandbox finds it in the image, brings it as a cached layer, or refuses. `ImageRef.runtimes` says where it is.
    """

    name: str
    minimum: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    """A pinned install, made once per (base image, key) and shown read-only in the box at `prefix`.

    `install` runs with `prefix` writable and the runtimes on PATH. Layers are made in order: a later one sees those
    before it, read-only. Equal keys must give equal contents.
    """

    key: str
    """Name and version, e.g. `opencode-ai@1.18.33`."""
    prefix: str
    """Absolute path in the box, e.g. `/opt/benchflow/agents/opencode`."""
    install: tuple[tuple[str, ...], ...] = ()
    """Commands as argv, run in order; `{prefix}` inside an argument is replaced."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files below `prefix` that need no command: relative path to content, executable if it starts with `#!`."""
    runtimes: tuple[Runtime, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 900.0


@dataclass(frozen=True, slots=True)
class McpServer:
    """A Model Context Protocol server offered to the agent."""

    name: str
    transport: Literal["stdio", "sse", "http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money. `None` means not known, which is never the same as zero."""

    input_tokens: int | None = None
    """Everything sent, cached tokens included, whatever the provider's own way of counting."""
    output_tokens: int | None = None
    """Everything generated, reasoning included."""
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    requests: int | None = None
    source: str = "unavailable"
    """`provider_response`, `agent_native_acp` or `unavailable`."""
    complete: bool = True
    """False: a request that used tokens reported none, so the numbers are a lower bound."""


CheckFn = Callable[[], list[Check]]
JsonDict = dict[str, Any]


def no_checks() -> list[Check]:
    """The default `check` of every spec: nothing beyond importing to look at."""
    return []


_PRIVATE: Final = "benchflow-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder that only this user can read, for files on their way into or out of a box.

    Its name says which process it belongs to: what a killed one left is removed by `bench cleanup` and by the next job.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix=f"{_PRIVATE}{process_mark()}-") as folder:
        yield Path(folder)


async def upload_secret(box: Sandbox, content: bytes, path: str, user: str) -> None:
    """Put a file into a box that only its user can read, on the host and in the box."""
    with private_folder() as folder:
        (folder / "secret").write_bytes(content)
        await box.upload(folder / "secret", path, user=user, mode=0o600)


def process_mark(pid: int | None = None) -> str:
    """A process id and when that process started, in the kernel's ticks: the id alone may be another's by now."""
    pid = pid or os.getpid()
    try:
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = "0"
    return f"{pid}-{started}"


def abandoned_folders(parent: Path | None = None) -> Iterator[Path]:
    """Folders below `parent` whose names begin with the mark of a dead process; by default, its private folders."""
    import tempfile

    prefix = "" if parent else _PRIVATE
    parent = parent or Path(tempfile.gettempdir())
    for folder in parent.glob(f"{prefix}*-*-*"):
        pid, started = folder.name.removeprefix(prefix).split("-")[:2]
        if pid.isdigit() and f"{pid}-{started}" != process_mark(int(pid)) and folder.lstat().st_uid == os.geteuid():
            yield folder
