"""A worker process as its executor sees it: items in, results out, as lines of JSON over its standard streams.

`python -m benchflow_core.worker` runs items in an environment that has the core and the plugins of a job. Whatever can
start a program on a host can be an executor.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

from benchflow_core.contracts import Hear, ItemResult, PlanItem
from benchflow_core.errors import WorkerLost

__all__ = ["WORKER", "WorkerProcess"]

WORKER: Final = (sys.executable, "-m", "benchflow_core.worker", "--owned")
"""Its command. `--owned`: the end of its input means that its owner is gone, and ends it."""
_LINE: Final = 1 << 26
_TEARDOWN: Final = 180.0
"""Seconds for a cancelled item: a rollout's own deadline for cleaning up is shorter."""
_CLOSE: Final = 60.0
SILENCE: Final = 120.0
"""Seconds after which a worker with items that says nothing is lost: it says something every few seconds."""


class WorkerProcess:
    """One process that runs as many items at a time as it is given. It ends with its owner, however that ends."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[str, tuple[asyncio.Future[ItemResult], Hear]] = {}
        self._said: deque[str] = deque(maxlen=20)
        self._lines = 0
        self._readers = [asyncio.create_task(self._results()), asyncio.create_task(self._complaints())]
        self._watcher = asyncio.create_task(self._watch())

    @classmethod
    async def start(
        cls,
        env: Mapping[str, str] | None = None,
        argv: Sequence[str] = WORKER,
        gateways: Mapping[str, Any] | None = None,
    ) -> Self:
        """Start one. `env`: all of its variables; none: those of this process.

        `gateways`: the address of a `GatewayServer` on the worker's host; none: the worker opens gateways of its own.
        """
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, limit=_LINE
        )
        worker = cls(process)
        if gateways is not None:
            await worker._send({"gateways": gateways})
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> int:
        """Items that are in it now."""
        return len(self._waiting)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and not self._readers[0].done()

    async def run(self, item: PlanItem, hear: Hear) -> ItemResult:
        """As `Executor.run` says."""
        done: asyncio.Future[ItemResult] = asyncio.get_running_loop().create_future()
        self._waiting[item.id] = (done, hear)
        try:
            await self._send(item.to_json())
            return await asyncio.shield(done)
        except asyncio.CancelledError as stop:
            await self._cancel(item.id, str(stop.args[0]) if stop.args else "stopped by the user.", done)
            raise
        finally:
            self._waiting.pop(item.id, None)

    async def close(self) -> None:
        """End it, and whatever runs in it. Safe to call again."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _CLOSE if not self._waiting else _TEARDOWN)
        except TimeoutError:
            self.kill()
            await self._process.wait()
        self._watcher.cancel()
        await asyncio.gather(*self._readers, self._watcher, return_exceptions=True)

    def kill(self) -> None:
        """At once. What ran in it is lost."""
        with suppress(ProcessLookupError):
            self._process.kill()

    # --- parts -----------------------------------------------------------------------------------------

    async def _send(self, message: Mapping[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        if not self.alive:
            raise self._lost()
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            await stdin.drain()
        except OSError as error:
            raise self._lost() from error

    async def _cancel(self, item: str, reason: str, done: asyncio.Future[ItemResult]) -> None:
        """Torn down before it is given up; a second Ctrl-C does not cut that short."""
        with suppress(WorkerLost):
            await self._send({"cancel": item, "reason": reason})
        end = asyncio.get_running_loop().time() + _TEARDOWN
        while not done.done() and (left := end - asyncio.get_running_loop().time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done], timeout=left)
        if done.done() and not done.cancelled():
            done.exception()

    async def _results(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        try:
            while line := await stdout.readline():
                self._lines += 1
                self._heard(json.loads(line))
        finally:
            await asyncio.shield(asyncio.wait([self._readers[1]], timeout=2.0))  # its last words may hold the reason
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), 5.0)
            for done, _ in self._waiting.values():
                if not done.done():
                    done.set_exception(self._lost())

    def _heard(self, message: dict[str, Any]) -> None:
        done, hear = self._waiting.get(message.get("id", ""), (None, None))
        if done is None or hear is None:
            return
        if "result" not in message:
            hear(message)
        elif not done.done():
            done.set_result(ItemResult(message["id"], **message["result"]))

    async def _watch(self) -> None:
        """End a worker that says nothing. Only seconds in which this process was awake itself are counted."""
        heard, silent = 0, 0
        while self.alive:
            await asyncio.sleep(1.0)
            heard, silent = self._lines, silent + 1 if self._waiting and self._lines == heard else 0
            if silent >= SILENCE:
                self._said.append(f"it said nothing for {silent} s")
                self.kill()
                return

    async def _complaints(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while line := await stderr.readline():
            self._said.append(line.decode(errors="replace").rstrip())

    def _lost(self) -> WorkerLost:
        code = self._process.returncode
        how = (
            "does not answer" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        )
        said = f": {self._said[-1]}" if self._said else ""
        return WorkerLost(f"worker {self.pid} {how}{said}.", details={"said": list(self._said)})
