"""Real boxes for protocol servers, from whatever sandbox of this machine is installed, by the public contract alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path

from benchflow_testing_kit.resolve import resolve

from benchflow_core.contracts import (
    Capability,
    ExecResult,
    ImageRef,
    ImageRequest,
    NetworkPolicy,
    Process,
    Resources,
    Runtime,
    Sandbox,
    SandboxContext,
    SandboxProvider,
    SandboxSpec,
    StartRequest,
)
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.hookspecs import GROUPS
from benchflow_testing_clouds.terminal import TERMINAL

__all__ = ["NO_MOUNTS", "BackedBox", "Backing", "BuildFailed", "has_users", "may_mount"]

CHOICE = "BENCHFLOW_CLOUDS_BACKING"
"""The sandbox to take boxes from; without it, the one of this machine that is preferred by rank."""
_AS_A_MACHINE = {"nesting": "yes"}
"""An option of sandboxes whose boxes can be machines of their own, with namespaces and mounts in them."""


NO_MOUNTS = "behind the server are containers in which nobody may mount; the box kit's own tests hold its views"
"""Why the tests of access views have to fail there."""


class BuildFailed(Exception):
    """The image cannot be built. The log is what a vendor would show."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


def _spec() -> SandboxSpec:
    if name := os.environ.get(CHOICE):
        found: SandboxSpec = resolve("sandbox", name).spec
        return found
    candidates = []
    for point in entry_points(group=GROUPS["sandbox"]):
        spec: SandboxSpec = resolve("sandbox", point.name).spec
        if spec.on_host and spec.default_rank is not None and spec.available().ok:
            candidates.append((spec.default_rank, point.name, spec))
    if not candidates:
        raise RuntimeError(
            "no sandbox of this machine is installed and available: there is nothing to back a cloud with"
        )
    return min(candidates, key=lambda row: row[:2])[2]


def _open(context: SandboxContext) -> tuple[SandboxProvider, bool]:
    """And whether root of a box may mount there, as on a vendor's machines."""
    spec = _spec()
    with contextlib.suppress(ConfigurationError):
        return spec.open(replace(context, options=_AS_A_MACHINE)), True
    return spec.open(context), False


def has_users() -> bool:
    """Whether a box of a server here can have more users than root, as a vendor's has."""
    declared = _spec().capabilities
    return Capability.USERS in (declared() if callable(declared) else declared)


def may_mount() -> bool:
    """Whether access views can be had in the boxes of a server here; nothing is started to find out."""
    with tempfile.TemporaryDirectory() as folder:
        return _open(SandboxContext(Path(folder), Path(folder), env=dict(os.environ)))[1]


class Backing:
    """One provider for all boxes of a server."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="benchflow-clouds-"))
        self._provider: SandboxProvider | None = None
        self.mounts = False
        """May root of a box mount in it?"""
        self.boxes: dict[str, BackedBox] = {}

    async def open(self) -> None:
        (self._root / "work").mkdir()
        context = SandboxContext(
            work_dir=self._root / "work",
            cache_dir=self._root / "cache",
            labels={"purpose": "clouds-test"},
            env=dict(os.environ),
            concurrency=64,
            build_concurrency=2,
        )
        self._provider, self.mounts = await asyncio.to_thread(_open, context)

    @property
    def provider(self) -> SandboxProvider:
        assert self._provider is not None, "the backing is not open"
        return self._provider

    def folder(self, name: str) -> Path:
        """A new empty folder of the server's."""
        (self._root / "files").mkdir(exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._root / "files"))

    async def build(self, dockerfile: Path, context: Path | None = None) -> ImageRef:
        """From a Dockerfile; its folder is the context unless another one is named."""
        request = ImageRequest(context=context or dockerfile.parent, dockerfile=dockerfile, allow_substitute=True)
        return await self._prepare(request)

    async def pull(self, image: str) -> ImageRef:
        return await self._prepare(ImageRequest(image=image, allow_substitute=True))

    async def _prepare(self, request: ImageRequest) -> ImageRef:
        try:
            return await self.provider.prepare(request, (), (Runtime("python", "3.9"),))
        except BenchflowError as error:
            raise BuildFailed(error.message, str(error.details.get("log") or error.message)) from error

    async def start(
        self,
        identity: str,
        image: ImageRef,
        *,
        env: Mapping[str, str] | None = None,
        public: bool = True,
        resources: Resources | None = None,
    ) -> BackedBox:
        policy = NetworkPolicy("public" if public else "none")
        request = StartRequest(
            name=identity,
            env=dict(env or {}),
            network=policy,
            resources=resources or Resources(),
            labels={"id": identity},
        )
        self.boxes[identity] = box = BackedBox(identity, image, await self.provider.start(image, request))
        return box

    async def stop(self, identity: str) -> None:
        box = self.boxes.pop(identity, None)
        if box is not None:
            await box.sandbox.stop()

    async def close(self) -> None:
        if self._provider is not None:
            await self._provider.close()
        await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)


@dataclass
class BackedBox:
    """A running box, as a protocol server needs it."""

    id: str
    image: ImageRef
    sandbox: Sandbox

    @property
    def python(self) -> str:
        return self.image.runtimes["python"]

    async def exec(self, argv: Sequence[str], **options: object) -> ExecResult:
        return await self.sandbox.exec(argv, **options)  # type: ignore[arg-type]

    async def shell(self, command: str, **options: object) -> ExecResult:
        return await self.exec(["sh", "-c", command], **options)

    async def spawn(self, argv: Sequence[str], **options: object) -> Process:
        return await self.sandbox.spawn(argv, **options)  # type: ignore[arg-type]

    async def terminal(
        self,
        argv: Sequence[str] = ("sh", "-i"),
        *,
        columns: int = 80,
        rows: int = 24,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """A process on a terminal of its own: what it reads and prints goes through one."""
        command = [self.python, "-c", TERMINAL, str(columns), str(rows), *argv]
        return await self.sandbox.spawn(command, cwd=cwd, env={"TERM": "xterm", "PS1": "$ ", **(env or {})})

    async def set_public(self, public: bool) -> None:
        await self.sandbox.set_network(NetworkPolicy("public" if public else "none"))

    async def die(self) -> None:
        """Kill the box without notifying the client."""
        await self.sandbox.stop()
