"""Programs in a box: run to the end, or held by a pair of pipes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Sequence

from benchflow_boxkit.command import Command, unknown_user

from benchflow_core.contracts.sandboxes import ExecResult
from benchflow_core.errors import CapabilityMissing, InfrastructureError, SandboxLost
from benchflow_sandbox_local import pipes
from benchflow_sandbox_local.channel import Channel
from benchflow_sandbox_local.helper import wire
from benchflow_sandbox_local.limits import Group
from benchflow_sandbox_local.process import LocalProcess

__all__ = ["Programs"]


class Programs:
    """The programs of one box, and the groups that hold them to its limits."""

    def __init__(self, channel: Channel, group: Group) -> None:
        self._channel, self._group = channel, group
        self._seen_oom_kills = 0
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._processes: set[LocalProcess] = set()
        self._drains: set[pipes.Collector] = set()
        channel.on_event = self._on_event

    def _on_event(self, message: wire.Message, fds: list[int]) -> None:
        wire.close_fds(fds)
        if message["event"] == "exit":
            future = self._exits.pop(message["exec"], None)
            if future is not None and not future.done():
                future.set_result(int(message["code"]))
        elif message["event"] == "lost":
            self._lose()

    def _lose(self) -> None:
        for future in self._exits.values():
            if not future.done():
                future.set_exception(SandboxLost("The box is gone."))
                future.exception()  # seen: there may be nobody to await it
        self._exits.clear()

    async def exec(self, command: Command, timeout: float | None, stdin: bytes | None, max_output: int) -> ExecResult:
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        run = _Run(stdin, max_output)
        try:
            number, _, exited = await self._launch(run.child_ends, command, keep=False)
            run.feed()
            try:
                left = None if deadline is None else max(0.0, deadline - loop.time())
                done, _ = await asyncio.wait({exited}, timeout=left)
                if not done:
                    await self._end_tree(number)
                code = await exited
            except asyncio.CancelledError:
                await asyncio.shield(self._end_tree(number))
                raise
        except BaseException:
            run.close()
            raise
        result = run.result(code, timed_out=not done, oom_killed=code in (-9, 137) and self._memory_ran_out())
        self._drains = {drain for drain in (*self._drains, *run.outputs) if drain.open}
        return result

    async def spawn(self, command: Command) -> LocalProcess:
        in_child, stdin = pipes.pipe_in()
        out_child, out = pipes.pipe_out()
        err_child, err = pipes.pipe_out()
        stdout, stderr = pipes.ReadEnd(out), pipes.ReadEnd(err)
        try:
            number, pid, exited = await self._launch((in_child, out_child, err_child), command, keep=True)
        except BaseException:
            for end in (stdin, stdout, stderr):
                end.close()
            raise
        process = LocalProcess(pid, stdin, stdout, stderr, exited, lambda: self._end_tree(number))
        self._processes.add(process)
        return process

    async def _launch(
        self, fds: Sequence[int | None], command: Command, *, keep: bool
    ) -> tuple[int, int, asyncio.Future[int]]:
        """Number, pid and exit of a new program. Closes `fds`, the child's ends, whatever happens."""
        given = [fd for fd in fds if fd is not None]
        number = self._channel.number()
        exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._exits[number] = exited
        try:
            command.check()
            message = {
                "argv": list(command.argv),
                "cwd": command.cwd,
                "env": dict(command.env),
                "user": command.user,
                "streams": [fd is not None for fd in fds],
                "view": command.view,
                "keep": keep,
            }
            try:
                answer, _ = await self._channel.call_fds("exec", given, number=number, **message)
            except OSError as error:
                raise InfrastructureError(f"{command.argv[0]} could not be started: {error.strerror}.") from error
            if "pid" not in answer:
                raise _unknown_user(answer, command.user)
            return number, int(answer["pid"]), exited
        except BaseException as error:
            self._exits.pop(number, None)
            if isinstance(error, asyncio.CancelledError):  # it may have started all the same
                await asyncio.shield(self._end_tree(number))
            raise
        finally:
            wire.close_fds(given)

    async def _end_tree(self, number: int) -> None:
        with contextlib.suppress(SandboxLost):
            await self._channel.call("kill", exec=number)

    def _memory_ran_out(self) -> bool:
        count = self._group.oom_kills()
        more, self._seen_oom_kills = count > self._seen_oom_kills, count
        return more

    def limits_hit(self) -> tuple[str, ...]:
        return self._group.limits_hit()

    def close(self) -> None:
        """The box was ended, and every program with it: let go of what led into it."""
        for future in self._exits.values():
            if not future.done():
                future.set_result(-signal.SIGKILL)
        self._exits.clear()
        for process in self._processes:
            process.abandon()
        for drain in self._drains:
            drain.close()
        self._processes.clear()
        self._drains.clear()


class _Run:
    """The pipes of a command that is run to its end."""

    def __init__(self, stdin: bytes | None, max_output: int) -> None:
        out_child, out = pipes.pipe_out()
        err_child, err = pipes.pipe_out()
        self._stdin = stdin
        self._input: pipes.WriteEnd | None = None
        in_child: int | None = None
        if stdin is not None:
            in_child, self._input = pipes.pipe_in()
        self.child_ends = (in_child, out_child, err_child)
        self.outputs = (pipes.Collector(out, max_output), pipes.Collector(err, max_output))
        self._feeder: asyncio.Task[None] | None = None

    def feed(self) -> None:
        if self._input is not None:
            self._feeder = asyncio.ensure_future(self._write(self._input, self._stdin or b""))

    @staticmethod
    async def _write(end: pipes.WriteEnd, data: bytes) -> None:
        with contextlib.suppress(Exception):  # a command need not read what it is given
            await end.write(data)
        end.close()

    def result(self, code: int, *, timed_out: bool, oom_killed: bool) -> ExecResult:
        self._end_input()
        out, err = self.outputs
        texts = out.finish(), err.finish()
        return ExecResult(code, *texts, timed_out, out.truncated or err.truncated, oom_killed)

    def close(self) -> None:
        self._end_input()
        for output in self.outputs:
            output.close()

    def _end_input(self) -> None:
        if self._feeder is not None:
            self._feeder.cancel()
        if self._input is not None:
            self._input.close()


def _unknown_user(answer: wire.Message, user: str | None) -> Exception:
    if "single_user" in answer:
        return CapabilityMissing(
            f"This box has one user, root: it cannot run a program as {user!r}.",
            remedy="Run as root, or allow a range of ids (newuidmap, /etc/subuid), or use another sandbox.",
        )
    return unknown_user(user)
