"""One box: a folder, and commands that run in it."""

from __future__ import annotations

import asyncio
import errno
import os
import pwd
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from benchflow_core.contracts import (
    AccessView,
    BoxInfo,
    ByteStream,
    DownloadLimits,
    ExecResult,
    HostEndpoint,
    NetworkPolicy,
    Snapshot,
)
from benchflow_core.errors import CapabilityMissing, SandboxLost

from {{module}} import leases, transfer
from {{module}}.output import Output
from {{module}}.running import Running
from {{module}}.trees import end_all, marked


class Box:
    """Satisfies `benchflow_core.contracts.Sandbox`."""

    def __init__(self, identity: str, folder: Path, workdir: str, env: Mapping[str, str]) -> None:
        user = pwd.getpwuid(os.getuid()).pw_name
        self.info = BoxInfo(id=identity, workdir=workdir, default_user=user, users=(user,))
        self._folder = folder
        self._env = {**env, "BENCHFLOW_BOX": identity}
        self._processes: set[Running] = set()
        self._stopped = False

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
        self._check(user, service, view)
        try:
            process = self._run(argv, cwd, env)
        except OSError as error:
            there = "/" in argv[0] and error.errno != errno.ENOENT  # a closed folder of PATH says nothing about a name
            code = 126 if there else 127
            return ExecResult(code, b"", f"{argv[0]}: {error.strerror}\n".encode())
        try:
            return await _to_the_end(process, stdin or b"", timeout, max_output)
        except asyncio.CancelledError:
            await process.kill()
            raise
        finally:
            process.close()
            self._processes.discard(process)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        service: str = "main",
        view: AccessView | None = None,
    ) -> Running:
        self._check(user, service, view)
        try:
            return self._run(argv, cwd, env)
        except OSError as error:
            raise SandboxLost(f"{argv[0]} cannot be started: {error.strerror}", retryable=False) from error

    async def upload(
        self, source: Path, target: str, *, user: str | None = None, mode: int | None = None, service: str = "main"
    ) -> None:
        self._check(user, service, None)
        await asyncio.to_thread(transfer.copy_in, source, Path(target), mode)

    async def download(
        self, source: str, target: Path, *, limits: DownloadLimits | None = None, service: str = "main"
    ) -> None:
        self._check(None, service, None)
        await asyncio.to_thread(transfer.copy_out, self._folder, source, target, limits or DownloadLimits())

    async def processes(self, *, service: str = "main") -> list[int]:
        self._check(None, service, None)
        return await asyncio.to_thread(marked, "BENCHFLOW_BOX", self.info.id)

    async def kill_all(self, *, service: str = "main") -> None:
        self._check(None, service, None)
        await asyncio.to_thread(end_all, "BENCHFLOW_BOX", self.info.id)

    async def snapshot(self, name: str, *, keep: bool = False) -> Snapshot:
        _cannot("take snapshots")

    async def restore(self, snapshot: Snapshot) -> None:
        _cannot("restore snapshots")

    async def set_network(self, policy: NetworkPolicy) -> None:
        _cannot("change the network")

    async def listening(self, *, service: str = "main") -> list[int]:
        _cannot("tell its ports from the machine's")

    async def dial(self, port: int, *, service: str = "main") -> ByteStream:
        _cannot("dial into a box")

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        raise NotImplementedError  # the core's own way

    async def logs(self, *, service: str = "main", tail: int = 65536) -> bytes:
        return b""

    async def stop(self) -> None:
        self._stopped = True
        await asyncio.to_thread(leases.remove, self.info.id)
        await asyncio.gather(*(process.kill() for process in self._processes))
        self._processes.clear()

    def _run(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> Running:
        process = Running(argv, cwd or self.info.workdir, {**self._env, **(env or {})}, uuid.uuid4().hex)
        self._processes.add(process)
        return process

    def _check(self, user: str | None, service: str, view: AccessView | None) -> None:
        if self._stopped:
            raise SandboxLost(f"The box {self.info.id} was stopped.")
        if user not in (None, self.info.default_user):
            raise CapabilityMissing(f"Commands run as {self.info.default_user} only, not as {user!r}.")
        if service != "main" or view is not None:
            _cannot("run services or limit what a process sees")


async def _to_the_end(process: Running, stdin: bytes, timeout: float | None, max_output: int) -> ExecResult:
    out, err = Output(max_output), Output(max_output)
    streams = [
        asyncio.create_task(out.fill(process.read)),
        asyncio.create_task(err.fill(process.read_stderr)),
        asyncio.create_task(_feed(process, stdin)),
    ]
    try:
        await asyncio.wait([process.ended], timeout=timeout)
        timed_out = not process.ended.done()
        if timed_out:
            await process.kill()
        # A child in the background may hold the pipes open; what the command itself wrote is already in them.
        await asyncio.wait(streams[:2], timeout=0.5)
        code = await process.wait()
        return ExecResult(code, out.bytes(), err.bytes(), timed_out, out.truncated or err.truncated)
    finally:
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)


async def _feed(process: Running, data: bytes) -> None:
    """A command need not read its input."""
    try:
        await process.write(data)
    finally:
        await process.close_stdin()


def _cannot(what: str) -> NoReturn:
    raise CapabilityMissing(f"This sandbox cannot {what}.")
