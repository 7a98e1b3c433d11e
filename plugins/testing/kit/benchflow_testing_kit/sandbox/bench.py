"""What the sandbox tests work with: an open provider, a prepared image, boxes, and a shell in them."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchflow_core.contracts import (
    ExecResult,
    HostEndpoint,
    ImageRef,
    ImageRequest,
    Layer,
    Lease,
    Runtime,
    Sandbox,
    SandboxContext,
    SandboxProvider,
    SandboxSpec,
    StartRequest,
)
from benchflow_core.errors import BenchflowError

if TYPE_CHECKING:
    from benchflow_core.gateway.expose import OpenTunnel

__all__ = ["HEARTBEAT", "Bench", "beats", "ok", "sh"]

HEARTBEAT = 'while :; do echo . >>"$1"; sleep 0.1 2>/dev/null || sleep 1; done'
"""A loop for `sh -c`: its file grows for as long as the process lives."""


class Bench:
    """One provider and one image for a whole class of tests; boxes are stopped after the test that started them."""

    def __init__(self) -> None:
        self.label = f"conformance-{uuid.uuid4().hex[:12]}"
        self._root = Path(tempfile.mkdtemp(prefix="benchflow-kit-"))
        self._provider: SandboxProvider | None = None
        self._image: ImageRef | None = None
        self._shared: Sandbox | None = None
        self._started: list[Sandbox] = []
        self._opened: list[SandboxProvider] = []
        self._tunnels: list[OpenTunnel] = []

    async def open(
        self,
        spec: SandboxSpec,
        request: ImageRequest,
        options: Mapping[str, str],
        layers: Sequence[Layer] = (),
        runtimes: Sequence[Runtime] = (),
    ) -> None:
        """Once per class; later calls find everything ready. Asked for nothing, Python is there if it can be had."""
        self.spec, self.request, self.options = spec, request, options
        if self._image is not None:
            return
        found = spec.available()
        if not found.ok:
            pytest.skip(f"not available here: {found.reason} {found.remedy}".strip())
        if self._provider is None:
            self._provider = await asyncio.to_thread(spec.open, self.context("main"))
        if layers or runtimes:
            self._image = await self._provider.prepare(request, layers, runtimes)
            return
        try:
            self._image = await self._provider.prepare(request, (), (Runtime("python", "3.9"),))
        except BenchflowError:
            self._image = await self._provider.prepare(request)

    def context(self, name: str) -> SandboxContext:
        work = self._root / "work" / name
        work.mkdir(parents=True, exist_ok=True)
        labels, cache = {"conformance": self.label}, self._root / "cache"
        return SandboxContext(work_dir=work, cache_dir=cache, labels=labels, options=self.options, concurrency=8)

    @property
    def provider(self) -> SandboxProvider:
        assert self._provider is not None
        return self._provider

    @property
    def image(self) -> ImageRef:
        assert self._image is not None
        return self._image

    @property
    def work_dir(self) -> Path:
        return self._root / "work"

    @property
    def capabilities(self) -> frozenset[str]:
        declared = self.spec.capabilities
        return declared() if callable(declared) else declared

    def python(self) -> str:
        """Python's path in the box; the test is skipped where there is none."""
        path = self.image.runtimes.get("python")
        if path is None:
            pytest.skip("no Python runtime in the image")
        return path

    def another_provider(self) -> SandboxProvider:
        """One more, on the same cache, for tests that close it themselves; closed afterwards in any case."""
        provider = self.spec.open(self.context(uuid.uuid4().hex[:8]))
        self._opened.append(provider)
        return provider

    def start_request(self, **changes: Any) -> StartRequest:
        name = f"kit-{uuid.uuid4().hex[:8]}"
        request = StartRequest(name=name, labels={"conformance": self.label, "box": name})
        return dataclasses.replace(request, **changes)

    async def start(self, image: ImageRef | None = None, **changes: Any) -> Sandbox:
        box = await self.provider.start(image or self.image, self.start_request(**changes))
        self._started.append(box)
        return box

    async def shared(self) -> Sandbox:
        """A box for tests that do no harm to it. Replaced when an earlier test broke it."""
        if self._shared is not None:
            try:
                async with asyncio.timeout(20):
                    alive = (await self._shared.exec(["sh", "-c", "exit 0"])).exit_code == 0
            except (BenchflowError, TimeoutError):
                alive = False
            if alive:
                return self._shared
            await self._shared.stop()
        self._shared = await self.provider.start(self.image, self.start_request())
        return self._shared

    async def scratch(self, box: Sandbox) -> str:
        """A new empty folder in the box."""
        path = f"{box.info.workdir.rstrip('/')}/kit-{uuid.uuid4().hex[:8]}"
        await ok(box, 'mkdir -p "$1"', path)
        return path

    async def expose(self, box: Sandbox, port: int, inside: int | None = None) -> str:
        """A server on this host's loopback, shown in the box: in the sandbox's own way, or else in the core's."""
        endpoint = HostEndpoint("127.0.0.1", port)
        from benchflow_core.gateway.expose import show_in_box

        url, tunnel = await show_in_box(box, endpoint, {"python": self.python()}, inside)
        if tunnel is not None:
            self._tunnels.append(tunnel)
        return url

    async def leases(self, **labels: str) -> list[Lease]:
        """This class's leases, those with the given labels."""
        wanted = {"conformance": self.label, **labels}.items()
        return [lease async for lease in self.spec.list_leases() if wanted <= lease.labels.items()]

    async def after_test(self) -> None:
        started, self._started = self._started, []
        opened, self._opened = self._opened, []
        tunnels, self._tunnels = self._tunnels, []
        await asyncio.gather(*(tunnel.close() for tunnel in tunnels))
        await asyncio.gather(*(box.stop() for box in started))
        for provider in opened:
            await provider.close()

    async def close(self) -> None:
        try:
            await self.after_test()
            if self._shared is not None:
                await self._shared.stop()
            if self._provider is not None:
                await self._provider.close()
                await self._reap()
        finally:
            await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)

    async def _reap(self) -> None:
        """Kept snapshots and what a crashed child left: the kit leaves nothing at the vendor."""
        for lease in await self.leases():
            if self.spec.reap is not None:
                await self.spec.reap(lease)


async def sh(box: Sandbox, script: str, *args: str, **options: Any) -> ExecResult:
    """`sh -c` with positional arguments."""
    return await box.exec(["sh", "-c", script, "sh", *args], **options)


async def ok(box: Sandbox, script: str, *args: str, **options: Any) -> str:
    """The same; it must succeed, and what it printed comes back."""
    done = await sh(box, script, *args, **options)
    assert done.exit_code == 0, f"{script!r} ended with {done.exit_code}: {done.stderr[-2000:]!r}"
    return done.stdout.decode()


async def beats(box: Sandbox, files: Sequence[str]) -> list[str]:
    """Those heartbeat files that are still growing."""
    size = 'for f; do if [ -e "$f" ]; then wc -c <"$f"; else echo 0; fi; done'
    before = (await ok(box, size, *files)).split()
    await asyncio.sleep(1.2)
    after = (await ok(box, size, *files)).split()
    return [name for name, old, new in zip(files, before, after, strict=True) if int(new) > int(old)]
