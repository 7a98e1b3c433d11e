"""A host server shown inside a box that has no way of its own for it: over the stdio of one process there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Self

from benchflow_core.contracts import HostEndpoint, Process, Sandbox
from benchflow_core.errors import BenchflowError, CapabilityMissing, InfrastructureError
from benchflow_wires.mux import HEAD, HELLO, Mux, MuxViolation, Stream, join

__all__ = ["Tunnel"]

_START = 30.0
_ANSWER = 10.0
_STDERR = 4000


class Tunnel:
    """One program in the box, listening on its loopback. Whatever it says, it reaches this one endpoint only."""

    def __init__(self, process: Process, endpoint: HostEndpoint) -> None:
        self.port = 0
        self._process = process
        self._endpoint = endpoint
        self._stderr = bytearray()
        self._drain = asyncio.create_task(self._drain_stderr())
        self._mux: Mux | None = None
        self._run: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, sandbox: Sandbox, endpoint: HostEndpoint, runtimes: Mapping[str, str], *, port: int = 0
    ) -> Self:
        """`port` 0 takes a free one. Raises `CapabilityMissing` where the box has no Python."""
        python = runtimes.get("python")
        if python is None:
            raise CapabilityMissing(
                "this sandbox cannot show the model gateway inside the box, and the image has no Python to do it with.",
                remedy="Use an image with python3, or another sandbox.",
            )
        user = "root" if "root" in sandbox.info.users else None
        process = await sandbox.spawn((python, "-I", "-S", "-c", _program(), str(port)), cwd="/", user=user)
        tunnel = cls(process, endpoint)
        try:
            async with asyncio.timeout(_START):
                await tunnel._hello()
        except BaseException as error:
            await tunnel.close()
            if isinstance(error, TimeoutError | MuxViolation):
                raise InfrastructureError(f"the tunnel to the model gateway did not start: {error!r}.") from error
            raise
        return tunnel

    @property
    def url(self) -> str:
        """Inside the box."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        """Not known to be gone."""
        return self._run is not None and not self._run.done()

    async def answers(self) -> bool:
        """Whether the program in the box is there: asked, not remembered."""
        if self._mux is None or self._run is None:
            return False
        ping = asyncio.ensure_future(self._mux.ping())
        try:
            await asyncio.wait({ping, self._run}, timeout=_ANSWER, return_when=asyncio.FIRST_COMPLETED)
            return ping.done() and ping.exception() is None and self.alive
        finally:
            ping.cancel()
            await asyncio.gather(ping, return_exceptions=True)

    async def close(self) -> None:
        """Safe to call again; never raises for a box that is gone."""
        for task in (self._run, self._drain):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        with suppress(BenchflowError, OSError):
            await self._process.kill()

    async def _hello(self) -> None:
        """The first frame says where it listens; what follows it belongs to the streams."""
        held = b""
        while len(held) < HEAD.size + 4:
            data = await self._process.read()
            if not data:
                await asyncio.wait({self._drain}, timeout=1.0)
                said = bytes(self._stderr).decode("utf-8", "replace").strip().splitlines()
                raise InfrastructureError(
                    f"the tunnel to the model gateway did not start: {said[-1] if said else 'it ended at once'}."
                )
            held += data
        number, kind, length = HEAD.unpack_from(held)
        if (number, kind, length) != (0, HELLO, 4):
            raise MuxViolation("no greeting")
        self.port = int.from_bytes(held[HEAD.size : HEAD.size + 4], "big")
        rest = [held[HEAD.size + 4 :]]

        async def read() -> bytes:
            return (rest.pop() if rest else b"") or await self._process.read()

        self._mux = Mux(read, self._process.write, self._accept)
        self._run = asyncio.create_task(self._serve(self._mux))

    async def _serve(self, mux: Mux) -> None:
        with suppress(MuxViolation, BenchflowError, OSError):
            await mux.run()

    async def _accept(self, stream: Stream) -> None:
        try:
            reader, writer = await asyncio.open_connection(self._endpoint.host, self._endpoint.port)
        except OSError:
            await stream.reset()
            return
        await join(stream, reader, writer)

    async def _drain_stderr(self) -> None:
        with suppress(BenchflowError, OSError):
            while data := await self._process.read_stderr():
                self._stderr = (self._stderr + data)[-_STDERR:]


@cache
def _program() -> str:
    return resources.files("benchflow_wires").joinpath("mux.py").read_text("utf-8")
