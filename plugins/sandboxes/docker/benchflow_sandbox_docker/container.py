"""One container with our first process in it. Boxes, builders of layers and donors of files are all made of these."""

from __future__ import annotations

import asyncio
import contextlib
import io
import secrets
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from benchflow_boxkit.channel import Channel

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import Resources
from benchflow_core.errors import InfrastructureError, SandboxStartError
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.attached import Attached
from benchflow_sandbox_docker.engine.http import EngineError
from benchflow_sandbox_docker.interpreter import SUPERVISOR

__all__ = ["Container", "ContainerPlan", "Mount"]

_CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE",
    "SYS_CHROOT", "MKNOD", "AUDIT_WRITE", "SETFCAP",
    "NET_ADMIN",
)  # fmt: skip
"""What engines give by default, without NET_RAW. NET_ADMIN is for the first process alone, which forbids routes with it
and takes it away from everything it will ever start."""
_FOR_VIEWS: Final = {"cap": "SYS_ADMIN", "security": "apparmor=unconfined"}
"""Where programs may be given a view, likewise for the first process: an engine lets a whole container mount, or nobody
in it. Programs get a filter that refuses what this opens (`inside/filter.py`)."""
_TOO_MANY_CPUS: Final = "Range of CPUs"
_LOADER_ENV: Final = ("LD_PRELOAD=", "LD_LIBRARY_PATH=", "LD_AUDIT=", "GLIBC_TUNABLES=")
"""An image's own settings are for its programs, not for ours; programs get theirs from us."""


@dataclass(frozen=True, slots=True)
class Mount:
    volume: str
    target: str
    read_only: bool = True

    def config(self) -> dict[str, Any]:
        return {
            "Type": "volume",
            "Source": self.volume,
            "Target": self.target,
            "ReadOnly": self.read_only,
            "VolumeOptions": {"NoCopy": True},
        }


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    image: str
    mounts: Sequence[Mount] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    network: str = "none"
    """An engine network: `none`, `bridge`, or the name of one."""
    forbidden: Sequence[str] = ()
    """Prefixes of addresses that nothing in the container may reach."""
    peers: Sequence[str] = ()
    """Prefixes that it may reach all the same, also where it is cut off: the other services of a compose task."""
    never: Sequence[str] = ()
    """Addresses among `peers` that it may not: the gateways, which are the engine's host."""
    platform: str | None = None
    views: bool = False
    """May programs in it be given an access view?"""
    host_config: Mapping[str, Any] = field(default_factory=dict)
    """More of the engine's own settings, e.g. extra mounts of a compose service."""
    config: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    own_accounts: bool = False
    """The image's account files would hold up the engine, which reads them before it starts anything: give it ours."""

    def create_config(self) -> dict[str, Any]:
        more = _FOR_VIEWS if self.views else {}
        host = {
            "AutoRemove": True,
            "NetworkMode": self.network,
            "CapDrop": ["ALL"],
            "CapAdd": [*_CAPABILITIES, *([more["cap"]] if more else ())],
            "SecurityOpt": ["no-new-privileges", *([more["security"]] if more else ())],
            "LogConfig": {"Type": "none"},
            "Mounts": [mount.config() for mount in self.mounts],
            **_limits(self.resources),
            **self.host_config,
        }
        return {
            "Image": self.image,
            "Entrypoint": [SUPERVISOR[0]],
            "Cmd": list(SUPERVISOR[1:]),
            "User": "0:0",
            "WorkingDir": "/",
            "Env": list(_LOADER_ENV),
            "Labels": dict(self.labels),
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "Healthcheck": {"Test": ["NONE"]},
            **self.config,
            "HostConfig": host,
        }


def _limits(resources: Resources) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if resources.cpus is not None:
        found["NanoCpus"] = int(resources.cpus * 1_000_000_000)
    if resources.memory_mb is not None:
        found["Memory"] = found["MemorySwap"] = resources.memory_mb * 1024 * 1024
    if resources.pids is not None:
        found["PidsLimit"] = resources.pids
    if resources.gpus:
        request: dict[str, Any] = {"Driver": "", "Count": resources.gpus, "Capabilities": [["gpu"]]}
        found["DeviceRequests"] = [request]
    return found


class Container:
    def __init__(self, engine: EngineClient, channel: Channel, identity: str, network: str) -> None:
        self.engine, self.channel, self.id, self.network = engine, channel, identity, network
        self.users: tuple[str, ...] = ("root",)
        self.notices: tuple[str, ...] = ()
        self._removing: asyncio.Future[None] | None = None

    @classmethod
    async def start(cls, engine: EngineClient, plan: ContainerPlan) -> Container:
        """Nothing of it is left on failure or cancellation."""
        name = f"benchflow-{secrets.token_hex(8)}"
        # The engine goes on with a request whose client went away: we see it to its end before we clean up.
        begun = asyncio.ensure_future(_begin(engine, name, plan))
        try:
            identity, channel, plan = await asyncio.shield(begun)
        except BaseException as error:
            for result in await asyncio.gather(begun, return_exceptions=True):
                if isinstance(result, tuple):
                    await asyncio.shield(result[1].close())
            with contextlib.suppress(InfrastructureError):
                await asyncio.shield(engine.remove(name))
            if isinstance(error, EngineError):
                raise _start_error(plan, error) from error
            raise
        box = cls(engine, channel, identity, plan.network)
        try:
            answer = await channel.call(
                "setup",
                forbidden=list(plan.forbidden),
                peers=list(plan.peers),
                never=list(plan.never),
                cut_off=False,
                views=plan.views,
            )
        except BaseException as error:
            await asyncio.shield(box.remove())
            if isinstance(error, OSError | InfrastructureError):
                said = channel.line.failure or error
                raise SandboxStartError(
                    f"The container on {plan.image} came up, but its first process did not: {said}."
                ) from error
            raise
        box.users, box.notices = tuple(answer["users"]), plan.notices
        return box

    async def remove(self) -> None:
        """Safe to call again; never raises for one that is gone."""
        if self._removing is None:
            self._removing = asyncio.ensure_future(self._remove())
        await asyncio.shield(self._removing)

    async def _remove(self) -> None:
        try:
            with contextlib.suppress(EngineError):
                await self.engine.remove(self.id)
        finally:
            await self.channel.close()


async def _begin(engine: EngineClient, name: str, plan: ContainerPlan) -> tuple[str, Channel, ContainerPlan]:
    try:
        identity = await engine.create(name, plan.create_config(), plan.platform)
    except EngineError as error:
        if error.status != 400 or _TOO_MANY_CPUS not in error.reason:
            raise
        # A limit that the machine cannot reach limits nothing: the engine refuses it, and we need none.
        said = f"{plan.resources.cpus:g} CPUs were asked for, more than the engine's machine has: not limited"
        plan = replace(plan, resources=replace(plan.resources, cpus=None), notices=(*plan.notices, said))
        identity = await engine.create(name, plan.create_config(), plan.platform)
    channel = Channel(Attached(await engine.attach(identity)), f"The box {name}")
    try:
        if plan.own_accounts:
            await engine.put_archive(identity, "/", _accounts())
        await engine.start(identity)
    except BaseException:
        await channel.close()
        raise
    return identity, channel, plan


def _accounts() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for path, text in {"etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "etc/group": b"root:x:0:\n"}.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text))
    return held.getvalue()


def _start_error(plan: ContainerPlan, error: EngineError) -> SandboxStartError:
    if error.status == 404 and "image" in error.reason.lower():
        return SandboxStartError(f"The engine has no image {plan.image}.", retryable=False)
    if plan.resources.gpus and "device" in error.reason:
        return SandboxStartError(
            f"The engine cannot give {plan.resources.gpus} GPUs: {error.reason}.",
            retryable=False,
            remedy="Install NVIDIA's container toolkit for this engine, or use a sandbox that has GPUs.",
        )
    what = f"The engine cannot start a container on {plan.image}: {error.reason}."
    return SandboxStartError(what, retryable=False) if error.status == 400 else SandboxStartError(what)
