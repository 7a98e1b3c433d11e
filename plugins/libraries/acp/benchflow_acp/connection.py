"""JSON-RPC over a process: one reader, one writer, a supervisor. Knows nothing of ACP's methods.

Written by hand on raw dicts and not on the official SDK, by measurement (`benchmarks/perf/acp.py`): a sixth of its
import time, 2.5 times as many recorded updates per second, and what breaks the SDK's connection (a line that is no
object, an error that is text, `_meta` that becomes arguments) is an ordinary case here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from benchflow_acp.lines import Line, LineBuffer, LineTooLong, MalformedLine, decode, encode, salvage
from benchflow_core.contracts.logs import CappedLog
from benchflow_core.contracts.sandboxes import Process
from benchflow_core.errors import AgentCrashed, AgentError, AgentProtocolError, BenchflowError, TransportError

__all__ = ["Connection", "Peer", "RpcError"]

_FIRST_ID = 100_000
"""Far from the ids agents use, so that an echo of our answer to them is never taken for an answer to us."""
_MAX_UNSENT = 64 * 1024 * 1024
_EXIT_GRACE = 1.0
_DRAIN_QUIET = 0.25
_KILL_LIMIT = 30.0
_NOISE_EXCERPT = 2000


class RpcError(Exception):
    """The other side answered a request with an error."""

    def __init__(self, method: str, error: Any) -> None:
        fields = error if isinstance(error, dict) else {}
        code, message = fields.get("code"), fields.get("message", error)
        self.method = method
        self.code: int | None = code if isinstance(code, int) else None
        self.message = str(message)[:_NOISE_EXCERPT]
        self.data = fields.get("data")
        super().__init__(f"{method}: {self.message} ({self.code})")


class Peer:
    """What a connection calls, on the event loop and in order of arrival. Neither may block for long."""

    def on_notification(self, method: str, params: dict[str, Any]) -> None:
        """A notification of the agent."""

    def on_request(self, request_id: Any, method: str, params: dict[str, Any]) -> None:
        """A request of the agent: answer with `Connection.reply` or `Connection.refuse`, now or later."""


class Connection:
    """Owns the process from here on: `close` kills it."""

    def __init__(
        self, process: Process, peer: Peer, *, log: CappedLog, max_line_bytes: int, echoes: frozenset[str] = frozenset()
    ) -> None:
        self._process = process
        self._peer = peer
        self._log = log
        self._buffer = LineBuffer(max_line_bytes)
        self._max_line_bytes = max_line_bytes
        self._echoes = echoes
        """Methods only we send: coming back, they are a terminal's echo."""
        self._pending: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._next_id = _FIRST_ID
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._queued_bytes = self._written_bytes = 0
        self._wake = asyncio.Event()
        self.met = False
        self._ended = False
        self._closing: asyncio.Task[None] | None = None
        self._clock = asyncio.get_running_loop().time
        self._waiting_since = self._clock()
        self.failure: BaseException | None = None
        self.last_message = 0.0
        self.stray_lines = 0
        self._exit = asyncio.create_task(process.wait())
        self._stderr = asyncio.create_task(self._drain_stderr())
        self._reader = asyncio.create_task(self._read())
        self._writer = asyncio.create_task(self._write())
        self._supervisor = asyncio.create_task(self._supervise())

    # --- sending -------------------------------------------------------------------------------------------

    def request(self, method: str, params: dict[str, Any]) -> asyncio.Future[Any]:
        """The future holds the result, an `RpcError`, or why the connection ended."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieved)
        if self.failure is not None:
            future.set_exception(self.failure)
            return future
        request_id, self._next_id = self._next_id, self._next_id + 1
        self._pending[request_id] = (method, future)
        self.last_message = self._clock()
        self._send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return future

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def reply(self, request_id: Any, result: Any) -> None:
        self._answer({"jsonrpc": "2.0", "id": request_id, "result": result})

    def refuse(self, request_id: Any, code: int, message: str) -> None:
        self._answer({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})

    def _answer(self, message: dict[str, Any]) -> None:
        self.last_message = self._clock()
        self._send(message)
        if self._unsent_bytes > _MAX_UNSENT:
            self.fail(AgentProtocolError("the agent asks and does not read the answers: its standard input is full."))

    def _send(self, message: dict[str, Any]) -> None:
        if self.failure is None:
            line = encode(message)
            self._unsent.append(line)
            self._unsent_bytes += len(line)
            self._queued_bytes += len(line)
            self._wake.set()

    @property
    def mark(self) -> int:
        """The place of the message that was sent last, for `delivered`."""
        return self._queued_bytes

    def delivered(self, mark: int) -> bool:
        """Return whether everything up to this place was written to the process."""
        return self._written_bytes >= mark

    async def _write(self) -> None:
        """Apart from the reader, so that an agent that does not read cannot keep us from reading."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch = b"".join(self._unsent)
            self._unsent.clear()
            try:
                await self._process.write(batch)
            except BenchflowError as error:
                # The process is most likely gone: then the supervisor knows better why.
                await asyncio.wait({self._supervisor}, timeout=2 * _EXIT_GRACE)
                self.fail(error)
                return
            self._unsent_bytes -= len(batch)
            self._written_bytes += len(batch)

    # --- receiving -----------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while chunk := await self._process.read():
                for line in self._buffer.feed(chunk):
                    self._on_line(line)
                self._waiting_since = self._clock()
                await asyncio.sleep(0)  # a read that never waits would starve every other rollout
            for line in self._buffer.flush():
                self._on_line(line)
        except LineTooLong:
            self.fail(AgentProtocolError(f"the agent sent a line of more than {self._max_line_bytes} bytes."))
        except Exception as error:
            self.fail(error)

    def _on_line(self, line: Line) -> None:
        line = line.strip(b" \t\r\0")
        if not line:
            return
        try:
            value = decode(line)
        except MalformedLine:
            value = None if self.met else salvage(line)
        taken = [self._on_message(m) for m in (value if isinstance(value, list) else [value])]
        if any(taken):
            self.met = True
            self.last_message = self._clock()
        else:
            self.stray_lines += 1
            self._log.write(b"[stdout] " + line[:_NOISE_EXCERPT] + b"\n")

    def _on_message(self, message: Any) -> bool:
        """Whether it was one."""
        if not isinstance(message, dict):
            return False
        method = message.get("method")
        if not isinstance(method, str):
            return self._on_response(message)
        if method in self._echoes:
            return False
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        request_id = message.get("id")
        if request_id is None:
            self._peer.on_notification(method, params)
        elif isinstance(request_id, str | int | float) and not isinstance(request_id, bool):
            self._peer.on_request(request_id, method, params)
        else:
            return False
        return True

    def _on_response(self, message: dict[str, Any]) -> bool:
        answered = message.get("id")
        if not isinstance(answered, int) or answered not in self._pending:
            return False
        if "result" not in message and "error" not in message:
            return False
        method, future = self._pending.pop(answered)
        if future.done():
            return True
        if message.get("error") is not None:
            future.set_exception(RpcError(method, message["error"]))
        else:
            future.set_result(message.get("result"))
        return True

    async def _drain_stderr(self) -> None:
        with suppress(BenchflowError, OSError):
            while chunk := await self._process.read_stderr():
                self._log.write(chunk)
                await asyncio.sleep(0)

    # --- the end -------------------------------------------------------------------------------------------

    async def _supervise(self) -> None:
        await asyncio.wait({self._reader, self._exit}, return_when=asyncio.FIRST_COMPLETED)
        if self._reader.done():
            await asyncio.wait({self._exit}, timeout=_EXIT_GRACE)
        while not self._reader.done():  # a child may hold the pipe open for ever: read what is there, not more
            await asyncio.wait({self._reader}, timeout=_DRAIN_QUIET)
            if self._clock() - self._waiting_since >= _DRAIN_QUIET:
                break
        await asyncio.wait({self._stderr}, timeout=0.1)
        self.fail(self._ending())

    def _ending(self) -> BaseException:
        tail = self._log.excerpt()
        if not self._exit.done():
            return AgentProtocolError(
                "the agent closed its standard output but still runs.", details={"stderr_tail": tail}
            )
        if (error := self._exit.exception()) is not None:
            return error if isinstance(error, BenchflowError) else TransportError(f"waiting for the agent: {error}")
        code = self._exit.result()
        last = tail.splitlines()[-1][:300] if tail else "nothing on stderr"
        how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
        return AgentCrashed(f"the agent {how}: {last}.", details={"exit_code": code, "stderr_tail": tail})

    def fail(self, error: BaseException) -> None:
        """The first cause counts. Every pending request ends with it."""
        if self.failure is not None:
            return
        self.failure = error
        pending, self._pending = self._pending, {}
        for _, future in pending.values():
            if not future.done():
                future.set_exception(error)

    async def kill(self) -> None:
        """End the process and everything it started. Never raises but on cancellation."""
        with suppress(Exception):
            async with asyncio.timeout(_KILL_LIMIT):
                await self._process.kill()

    async def leave(self, grace: float, end: Callable[[], Awaitable[None]] | None) -> bool:
        """Close its input and let it end by itself; then `close` does not kill what it started. Whether it did."""
        with suppress(BenchflowError, OSError):
            await self._process.close_stdin()
        await asyncio.wait({self._exit}, timeout=grace)
        if not self._exit.done() and end is not None:
            with suppress(BenchflowError, OSError):
                await end()
            await asyncio.wait({self._exit}, timeout=grace)
        self._ended = self._exit.done()
        return self._ended

    async def close(self) -> None:
        """Safe to call again; goes on to the end even if the caller is cancelled."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self.fail(AgentError("the session was closed."))
        if not self._ended:
            await self.kill()
        await asyncio.wait({self._stderr}, timeout=0.1)
        tasks = {self._exit, self._stderr, self._reader, self._writer, self._supervisor}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._log.close()

    @property
    def excerpt(self) -> str:
        return self._log.excerpt()


def _retrieved(future: asyncio.Future[Any]) -> None:
    """Nobody has to wait for an answer; an unread error is no defect."""
    if not future.cancelled():
        future.exception()
