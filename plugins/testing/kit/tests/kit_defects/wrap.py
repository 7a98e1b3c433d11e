"""A sandbox around a sandbox, passing everything on; a defect overrides what it breaks."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any

from benchflow_core.contracts import Lease, SandboxContext, SandboxSpec


class Process:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def pid(self):
        return self.inner.pid

    async def read(self, limit=65536):
        return await self.inner.read(limit)

    async def read_stderr(self, limit=65536):
        return await self.inner.read_stderr(limit)

    async def write(self, data):
        await self.inner.write(data)

    async def close_stdin(self):
        await self.inner.close_stdin()

    async def wait(self):
        return await self.inner.wait()

    async def kill(self):
        await self.inner.kill()


class Box:
    process_type: type[Process] = Process

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def info(self):
        return self.inner.info

    async def exec(self, argv, **options):
        return await self.inner.exec(argv, **options)

    async def spawn(self, argv, **options):
        return self.process_type(await self.inner.spawn(argv, **options))

    async def upload(self, source, target, **options):
        await self.inner.upload(source, target, **options)

    async def download(self, source, target, **options):
        await self.inner.download(source, target, **options)

    async def processes(self, **options):
        return await self.inner.processes(**options)

    async def kill_all(self, **options):
        await self.inner.kill_all(**options)

    async def snapshot(self, name, **options):
        return await self.inner.snapshot(name, **options)

    async def restore(self, snapshot):
        await self.inner.restore(snapshot)

    async def set_network(self, policy):
        await self.inner.set_network(policy)

    async def listening(self, **options):
        return await self.inner.listening(**options)

    async def dial(self, port, **options):
        return await self.inner.dial(port, **options)

    async def expose_to_box(self, endpoint, **options):
        return await self.inner.expose_to_box(endpoint, **options)

    async def logs(self, **options):
        return await self.inner.logs(**options)

    async def stop(self):
        await self.inner.stop()


class Provider:
    box_type: type[Box] = Box

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def prepare(self, request, layers=(), runtimes=()):
        return await self.inner.prepare(request, layers, runtimes)

    async def start(self, image, request):
        return self.box_type(await self.inner.start(image, request))

    async def forget(self, snapshot):
        await self.inner.forget(snapshot)

    async def close(self):
        await self.inner.close()


@dataclasses.dataclass(frozen=True)
class Defect:
    """One way to be broken, and the tests that must notice."""

    name: str
    breaks: tuple[str, ...]
    provider: type[Provider]
    base: str
    declares: frozenset[str]
    lease: Callable[[Lease], Lease] | None = None

    def spec(self) -> SandboxSpec:
        """The base sandbox with the defect in it."""
        from benchflow_core.plugins import registry

        inner: SandboxSpec = registry().get("sandbox", self.base).spec
        declared = inner.capabilities() if callable(inner.capabilities) else inner.capabilities

        def open_provider(context: SandboxContext) -> Provider:
            return self.provider(inner.open(context))

        async def list_leases() -> AsyncIterator[Lease]:
            async for lease in inner.list_leases():
                yield self.lease(lease) if self.lease else lease

        return dataclasses.replace(
            inner, open=open_provider, capabilities=declared | self.declares, list_leases=list_leases
        )


ALL: list[Defect] = []


def defect(breaks: str, *, base: str = "folder", declares: str = "", lease: Callable[[Lease], Lease] | None = None):
    """Registers a broken `Process`, `Box` or `Provider`; its docstring says what is wrong with it."""

    def register(cls: type):
        box = type("BrokenBox", (Box,), {"process_type": cls}) if issubclass(cls, Process) else cls
        provider = box if issubclass(box, Provider) else type("BrokenProvider", (Provider,), {"box_type": box})
        names = tuple(breaks.split())
        ALL.append(Defect(cls.__name__, names, provider, base, frozenset(declares.split()), lease))
        return cls

    return register
