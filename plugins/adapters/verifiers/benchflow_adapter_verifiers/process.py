"""The process in which environments run: one for each Python environment and event loop, shared by its rollouts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from benchflow_adapter_verifiers.environment import WORKER, VerifiersEnvironment
from benchflow_core.errors import InfrastructureError

__all__ = ["EnvironmentWorker", "Message"]

Message = dict[str, Any]
_LINE: Final = 1 << 28
_TAIL: Final = 4000


class EnvironmentWorker:
    """Requests out, answers in. It ends with the event loop that started it, and by itself when this process does."""

    _running: ClassVar[dict[tuple[Any, ...], EnvironmentWorker]] = {}

    def __init__(self) -> None:
        self.plays: dict[int, Callable[[Message], None]] = {}
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._number = 0
        self._errors = b""
        self._life: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[asyncio.subprocess.Process] = asyncio.get_running_loop().create_future()

    @classmethod
    async def of(
        cls, environment: VerifiersEnvironment, modules: Path | None, allowed: tuple[str, ...]
    ) -> EnvironmentWorker:
        key = (asyncio.get_running_loop(), environment, modules, allowed)
        for old in [one for one in cls._running if one[0].is_closed()]:
            del cls._running[old]
        found = cls._running.get(key)
        if found is None or (found._life is not None and found._life.done()):
            found = cls._running[key] = cls()
            found._life = asyncio.create_task(found._live(environment, modules, allowed))
        await asyncio.shield(found._ready)
        return found

    def number(self) -> int:
        self._number += 1
        return self._number

    def send(self, message: Mapping[str, Any]) -> None:
        process = self._ready.result()
        assert process.stdin is not None
        if process.returncode is None:
            process.stdin.write(json.dumps(message).encode() + b"\n")

    async def ask_tool(self, play: int, server: str, request: Message) -> Message | None:
        """An MCP request of the agent's, answered by the environment."""
        number = self.number()
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self.send({"mcp": number, "play": play, "server": server, "request": request})
            response: Message | None = (await answer)["response"]
            return response
        finally:
            del self._answers[number]

    async def _live(self, environment: VerifiersEnvironment, modules: Path | None, allowed: tuple[str, ...]) -> None:
        try:
            python = await asyncio.to_thread(environment.ensure)
            process = await asyncio.create_subprocess_exec(
                str(python), str(WORKER), env=environment.process_env(allowed, modules), limit=_LINE, cwd="/",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        except BaseException as error:
            self._ready.set_exception(error) if isinstance(error, Exception) else self._ready.cancel()
            return
        try:
            self._ready.set_result(process)
            listening: list[Awaitable[None]] = [self._listen(process), self._drain(process)]
            await asyncio.gather(*listening)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            self._tell_of_the_end()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            message: Message = json.loads(line)
            if "mcp" in message:
                if (waiting := self._answers.get(message["mcp"])) is not None and not waiting.done():
                    waiting.set_result(message)
            elif (play := self.plays.get(message["play"])) is not None:
                play(message)

    async def _drain(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(65536):
            self._errors = (self._errors + data)[-_TAIL:]

    def _tell_of_the_end(self) -> None:
        last = (self._errors.decode("utf-8", "replace").strip().splitlines() or ["no reason given"])[-1]
        lost = InfrastructureError(f"the environment's process ended: {last[:400]}")
        for play in list(self.plays.values()):
            play({"lost": lost})
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(lost)
