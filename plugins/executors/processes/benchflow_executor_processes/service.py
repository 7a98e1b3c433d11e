"""A worker's own side: items of a job, one JSON object per line of standard input, run in this process.

Each line of the output is JSON about one item: `live`, `event` and `alive` while it runs, `result` at its end. A line
`{"cancel": ID, "reason": TEXT}` stops an item; `{"gateways": ADDRESS}`, before the first item, says where the job's
gateways are. At the end of the input what runs is finished; with `--owned` the end of the input means that the owner is
gone: what runs is torn down, and nothing more is written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from benchflow_core.contracts import ItemResult, OpenWorker, PlanItem
from benchflow_core.errors import ConfigurationError
from benchflow_executor_processes.gateways import RemoteGateways

__all__ = ["serve"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GONE = "the process of the job is gone."
_HEARTBEAT = 5.0


def serve(open_worker: OpenWorker, arguments: Sequence[str]) -> int:
    """Run the items of standard input and return the exit code: 0 if each has its result."""
    parser = argparse.ArgumentParser("python -m benchflow_core.worker", description="Run items of a job.")
    parser.add_argument("--owned", action="store_true", help="the end of the input means that the owner is gone")
    owned = parser.parse_args(arguments).owned
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a plugin prints must not get between the lines
    if owned:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the owner decides what it means
    return asyncio.run(_Service(open_worker, out, owned=owned).serve())


class _Service:
    def __init__(self, open_worker: OpenWorker, out: IO[bytes], *, owned: bool) -> None:
        self._out, self._owned = out, owned
        self._gateways: RemoteGateways | None = None
        self._worker = open_worker(self._say, lambda: self._gateways)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed = False

    async def serve(self) -> int:
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def read() -> None:
            while line := sys.stdin.buffer.readline():
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

        def stop() -> None:
            for name in self._tasks:
                self._worker.cancel(name, "stopped by the user.")
            lines.put_nowait(b"")

        if not self._owned:
            for number in _SIGNALS:
                loop.add_signal_handler(number, stop)
        threading.Thread(target=read, daemon=True).start()
        alive = asyncio.create_task(self._say_alive())
        while line := await lines.get():
            self._take(line)
        if self._owned:
            self._worker.abandon()
            for name in self._tasks:
                self._worker.cancel(name, _GONE)
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._worker.close()
        alive.cancel()
        return int(self._failed)

    async def _say_alive(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT)
            for name in self._tasks:
                self._say({"id": name, "alive": True})

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            if "cancel" in message:
                self._worker.cancel(message["cancel"], message.get("reason") or "stopped by the user.")
                return
            if "gateways" in message:
                self._gateways = RemoteGateways(message["gateways"])
                return
            item = PlanItem.from_json(message)
        except (ValueError, TypeError) as error:
            broken = ConfigurationError(f"a line of the input is not an item: {error}.")
            self._end(ItemResult("", None, broken.to_json()))
            return
        self._tasks[item.id] = asyncio.create_task(self._run(item))

    async def _run(self, item: PlanItem) -> None:
        try:
            self._end(await self._worker.run(item))
        finally:
            self._tasks.pop(item.id, None)

    def _end(self, result: ItemResult) -> None:
        self._failed = self._failed or result.error is not None
        self._say({"id": result.id, "result": {"rollout_dir": result.rollout_dir, "error": result.error}})

    def _say(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message, default=str).encode() + b"\n"
        try:
            while data:
                data = data[self._out.write(data) :]
        except OSError:  # nobody listens any more: the end of the input says the same
            return
