"""Programs in a box: run to the end, or held by a duplex process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping

from benchflow_boxkit.channel import Channel
from benchflow_boxkit.command import Command, unknown_user
from benchflow_boxkit.inside import wire
from benchflow_boxkit.streams import Collector, Inbound, Outbound
from benchflow_core.contracts.sandboxes import ExecResult
from benchflow_core.errors import CapabilityMissing, InfrastructureError, SandboxLost, TransportError

__all__ = ["BoxProcess", "Programs"]


class Programs:
    """The programs of one box."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._exits: dict[int, asyncio.Future[wire.Message]] = {}
        self._limits: dict[str, int] = {}
        self._oom_kills = 0
        channel.on_lost.append(self._lose)

    def exited(self, event: wire.Message) -> None:
        event["oom_killed"] = self._memory_ran_out(event)
        future = self._exits.pop(int(event["exec"]), None)
        if future is not None and not future.done():
            future.set_result(event)

    def _lose(self) -> None:
        for future in self._exits.values():
            if not future.done():
                future.set_exception(SandboxLost("The box is gone."))
                future.exception()  # seen: there may be nobody to await it
        self._exits.clear()

    def close(self) -> None:
        """The box was ended, and every program with it."""
        for future in self._exits.values():
            if not future.done():
                future.set_result({"code": -signal.SIGKILL})
        self._exits.clear()

    async def exec(self, command: Command, timeout: float | None, stdin: bytes | None, max_output: int) -> ExecResult:
        loop, channel = asyncio.get_running_loop(), self._channel
        deadline = None if timeout is None else loop.time() + timeout
        number = channel.number()
        outputs = [Collector(number + n, channel.send_if_there, max_output) for n in (1, 2)]
        channel.readers |= {output.number: output for output in outputs}
        feeder: asyncio.Task[None] | None = None
        try:
            if stdin is not None:
                writer = channel.writer(number)
            _, exited = await self._launch(number, command, stdin=stdin is not None, whole=True)
            if stdin is not None:
                feeder = asyncio.ensure_future(_feed(writer, stdin))
            try:
                left = None if deadline is None else max(0.0, deadline - loop.time())
                done, _ = await asyncio.wait({exited}, timeout=left)
                if not done:
                    await self.end_tree(number)
                event = await exited
            except asyncio.CancelledError:
                await asyncio.shield(self.end_tree(number))
                raise
        finally:
            if feeder is not None:
                feeder.cancel()
            channel.forget(number, number + 1, number + 2)
        code = int(event["code"])
        out, err = outputs
        truncated = out.truncated or err.truncated
        return ExecResult(code, out.result(), err.result(), not done, truncated, event.get("oom_killed", False))

    async def spawn(self, command: Command) -> BoxProcess:
        channel, number = self._channel, self._channel.number()
        stdin, stdout, stderr = channel.writer(number), channel.reader(number + 1), channel.reader(number + 2)
        try:
            pid, exited = await self._launch(number, command, stdin=True, whole=False)
        except BaseException:
            channel.forget(number, number + 1, number + 2)
            raise
        return BoxProcess(self, number, pid, stdin, stdout, stderr, exited)

    async def _launch(
        self, number: int, command: Command, *, stdin: bool, whole: bool
    ) -> tuple[int, asyncio.Future[wire.Message]]:
        command.check()
        exited: asyncio.Future[wire.Message] = asyncio.get_running_loop().create_future()
        self._exits[number] = exited
        try:
            try:
                answer = await self._channel.call(
                    "exec",
                    number,
                    argv=list(command.argv),
                    cwd=command.cwd,
                    env=dict(command.env),
                    user=command.user,
                    view=command.view,
                    stdin=stdin,
                    whole=whole,
                )
            except OSError as error:
                raise InfrastructureError(f"{command.argv[0]} could not be started: {error.strerror}.") from error
            if "no_view" in answer:
                raise CapabilityMissing(
                    f"This box cannot limit what one process sees: {answer['no_view']}.",
                    remedy="Use another sandbox with the capability access-view.",
                )
            if "single_user" in answer:
                raise CapabilityMissing(
                    f"This box has one user, root: it cannot run a program as {command.user!r}.",
                    remedy="Run as root, or allow a range of ids (newuidmap, /etc/subuid), or use another sandbox.",
                )
            if "pid" not in answer:
                raise unknown_user(command.user)
            return int(answer["pid"]), exited
        except BaseException as error:
            self._exits.pop(number, None)
            if isinstance(error, asyncio.CancelledError):  # it may have started all the same
                await asyncio.shield(self.end_tree(number))
            raise

    async def end_tree(self, number: int) -> None:
        with contextlib.suppress(SandboxLost):
            try:
                await self._channel.call("kill", exec=number)
            except OSError as error:
                raise InfrastructureError(f"Processes in the box cannot be ended: {error.strerror}.") from error

    def _memory_ran_out(self, event: wire.Message) -> bool:
        self._limits = {name: int(count) for name, count in event.get("limits", {}).items()}
        if event["code"] not in (-9, 137):
            return False
        count = self.count_limits().get("memory", 0)
        more, self._oom_kills = count > self._oom_kills, count
        return more

    def count_limits(self) -> Mapping[str, int]:
        """Return how often each limit was hit, as of the last program that ended."""
        return self._limits

    def limits_hit(self) -> tuple[str, ...]:
        return tuple(name for name, count in self.count_limits().items() if count)


class BoxProcess:
    """A process with its own pipes, carried over the box's one connection."""

    def __init__(
        self,
        programs: Programs,
        number: int,
        pid: int,
        stdin: Outbound,
        stdout: Inbound,
        stderr: Inbound,
        exited: asyncio.Future[wire.Message],
    ) -> None:
        self._programs, self._number, self._pid = programs, number, pid
        self._stdin, self._stdout, self._stderr, self._exited = stdin, stdout, stderr, exited

    @property
    def pid(self) -> int | None:
        return self._pid

    async def read(self, limit: int = 65536) -> bytes:
        return await self._stdout.read(limit)

    async def read_stderr(self, limit: int = 65536) -> bytes:
        return await self._stderr.read(limit)

    async def write(self, data: bytes) -> None:
        if self._exited.done():
            raise TransportError("The process has ended.")
        try:
            await self._stdin.write(data)
        except SandboxLost as error:
            raise TransportError("The box is gone.") from error

    async def close_stdin(self) -> None:
        with contextlib.suppress(SandboxLost):
            self._stdin.end()

    async def wait(self) -> int:
        return int((await asyncio.shield(self._exited))["code"])

    async def kill(self) -> None:
        await self._programs.end_tree(self._number)
        self._stdin.fail()
        for stream in (self._stdout, self._stderr):
            stream.drop()


async def _feed(writer: Outbound, data: bytes) -> None:
    with contextlib.suppress(TransportError, SandboxLost):  # a command need not read what it is given
        await writer.write(data)
        writer.end()
