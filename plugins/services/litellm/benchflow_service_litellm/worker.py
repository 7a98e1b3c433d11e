"""One LiteLLM process: started, gated on its health, started again when it dies."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp

from benchflow_core.errors import InfrastructureError

__all__ = ["LiteLLMWorker"]

_START_LIMIT: Final = 240.0
"""Seconds until it must be healthy. It takes about ten on an idle machine."""
_ATTEMPTS: Final = 3
_POLL: Final = 0.2
_SERVE: Final = Path(__file__).with_name("hosted") / "serve.py"


class LiteLLMWorker:
    """Supervised until it is closed."""

    def __init__(self, number: int, python: Path, config: Path, env: Mapping[str, str], log: Path) -> None:
        self.number = number
        self.busy = 0
        """Requests under way."""
        self.starts = 0
        self._python, self._config, self._env, self._log = python, config, env, log
        self._ready = asyncio.Event()
        self._failure: str | None = None
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None
        self._task = asyncio.create_task(self._supervise())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def healthy(self) -> bool:
        return self._ready.is_set() and self._failure is None

    async def healthy_again(self) -> None:
        """Returns when it answers; raises where it cannot be started."""
        await self._ready.wait()
        if self._failure is not None:
            raise InfrastructureError(f"LiteLLM does not start: {self._failure}", details={"log": str(self._log)})

    async def close(self) -> None:
        """Safe to call again."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._end()
        self._failure = self._failure or "it was closed."
        self._ready.set()

    async def _supervise(self) -> None:
        """A start that fails is tried again; a worker that was healthy and died may start as often as it likes."""
        failed = 0
        while failed < _ATTEMPTS:
            problem = await self._start()
            if problem is None:
                failed = 0
                self._ready.set()
                assert self._process is not None
                await self._process.wait()
                self._ready.clear()
            else:
                failed += 1
                await self._end()
                if failed == _ATTEMPTS:
                    self._failure = problem
        self._ready.set()

    async def _start(self) -> str | None:
        """What went wrong, or nothing."""
        self._port = _free_port()
        self.starts += 1
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = await asyncio.create_subprocess_exec(
                str(self._python), str(_SERVE), str(self._config), str(self._port),
                stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log, env=dict(self._env),
                cwd=self._config.parent, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return f"{self._python}: {error.strerror}."
        finally:
            os.close(log)
        try:
            async with asyncio.timeout(_START_LIMIT), aiohttp.ClientSession() as http:
                while self._process.returncode is None:
                    if await _answers(http, f"{self.url}/health/liveliness"):
                        return None
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            return f"not healthy after {_START_LIMIT:.0f} s; see {self._log}."
        return f"it exited with {self._process.returncode}: {_last_line(self._log)}"

    async def _end(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()


async def _answers(http: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with http.get(url, timeout=aiohttp.ClientTimeout(total=5)) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _last_line(path: Path) -> str:
    with suppress(OSError):
        lines = [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it said nothing."
    return "it said nothing."
