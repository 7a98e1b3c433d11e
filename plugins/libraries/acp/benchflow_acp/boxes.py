"""ACP's file and terminal methods, acting inside the box as the agent's user: never on the host."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from typing import Any

from benchflow_core.contracts.sandboxes import Process
from benchflow_core.contracts.sessions import ClientFiles

__all__ = ["BoxMethods", "MethodError"]

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32002

_LIMIT = 16 * 1024 * 1024
_TIMEOUT = 60.0
_MAX_TERMINALS = 64
_TERMINAL_BYTES = 1024 * 1024

_READ = """
[ -e "$1" ] || exit 44
[ -f "$1" ] || { echo "not a regular file" >&2; exit 1; }
exec head -c "$2" -- "$1"
"""
_WRITE = """
[ ! -e "$1" ] || [ -f "$1" ] || { echo "not a regular file" >&2; exit 1; }
mkdir -p -- "$(dirname -- "$1")" && cat > "$1"
"""


class MethodError(Exception):
    """An answer to the agent, not a failure of ours."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class BoxMethods:
    """`fs/*` and `terminal/*` over a sandbox. `handles` says which are enabled."""

    def __init__(self, options: ClientFiles) -> None:
        self._options = options
        self._terminals: dict[str, _Terminal] = {}
        self._made = 0
        files = {"fs/read_text_file": self._read, "fs/write_text_file": self._write}
        terminal = {
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }
        self._methods = {**(files if options.files else {}), **(terminal if options.terminal else {})}

    def handles(self, method: str) -> bool:
        return method in self._methods

    async def call(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result to send. Raises `MethodError` for what the agent asked wrongly or may not do."""
        return await self._methods[method](params)

    async def close(self) -> None:
        """Kill what the agent left in its terminals."""
        terminals, self._terminals = list(self._terminals.values()), {}
        await asyncio.gather(*(t.close() for t in terminals), return_exceptions=True)

    async def _read(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        path, start, count = _path(params), _count(params, "line"), _count(params, "limit")
        out = await self._sh(_READ, path, str(_LIMIT + 1))
        if len(out) > _LIMIT:
            raise MethodError(INTERNAL_ERROR, f"{path} is larger than {_LIMIT} bytes")
        text = out.decode("utf-8", "replace")
        if start is not None or count is not None:
            lines = text.splitlines(keepends=True)[max((start or 1) - 1, 0) :]
            text = "".join(lines if count is None else lines[:count])
        return {"content": text}

    async def _write(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        content = params.get("content")
        if not isinstance(content, str):
            raise MethodError(INVALID_PARAMS, "content must be text")
        await self._sh(_WRITE, _path(params), stdin=content.encode("utf-8", "replace"))
        return {}

    async def _sh(self, script: str, *args: str, stdin: bytes | None = None) -> bytes:
        o = self._options
        done = await o.sandbox.exec(
            ("sh", "-c", script, "sh", *args),
            cwd="/",
            user=o.user,
            view=o.view,
            stdin=stdin,
            timeout=_TIMEOUT,
            max_output=_LIMIT + 1024,
        )
        if done.exit_code == 44:
            raise MethodError(NOT_FOUND, f"Resource not found: {args[0]}")
        if done.exit_code or done.timed_out:
            reason = "timed out" if done.timed_out else done.stderr.decode("utf-8", "replace").strip()[-500:]
            raise MethodError(INTERNAL_ERROR, f"{args[0]}: {reason}")
        return done.stdout

    async def _create(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        command, args, cwd = params.get("command"), params.get("args") or [], params.get("cwd")
        if not isinstance(command, str) or not command or not _texts(args) or not isinstance(cwd, str | None):
            raise MethodError(INVALID_PARAMS, "command must be text and args a list of text")
        if len(self._terminals) >= _MAX_TERMINALS:
            raise MethodError(INTERNAL_ERROR, f"more than {_MAX_TERMINALS} terminals at once")
        # Without arguments the command may be a whole shell line: agents send both forms.
        shell = 'exec 2>&1; exec "$0" "$@"' if args else 'exec 2>&1; eval "$0"'
        o = self._options
        process = await o.sandbox.spawn(
            ("sh", "-c", shell, command, *args),
            cwd=cwd or o.cwd,
            env={**o.env, **_env(params.get("env"))},
            user=o.user,
            view=o.view,
        )
        self._made += 1
        name = f"terminal-{self._made}"
        limit = _count(params, "outputByteLimit")
        self._terminals[name] = _Terminal(process, min(_TERMINAL_BYTES if limit is None else limit, _LIMIT))
        return {"terminalId": name}

    async def _output(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._terminal(params).output()

    async def _wait(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._terminal(params).wait()

    async def _kill(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        await self._terminal(params).process.kill()
        return {}

    async def _release(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        terminal = self._terminal(params)
        del self._terminals[params["terminalId"]]
        await terminal.close()
        return {}

    def _terminal(self, params: Mapping[str, Any]) -> _Terminal:
        name = params.get("terminalId")
        found = self._terminals.get(name) if isinstance(name, str) else None
        if found is None:
            raise MethodError(NOT_FOUND, f"Resource not found: {name}")
        return found


class _Terminal:
    """One command and the end of its output."""

    def __init__(self, process: Process, limit: int) -> None:
        self.process = process
        self._limit = limit
        self._kept = bytearray()
        self._truncated = False
        self._exit = asyncio.create_task(self._run())

    async def _run(self) -> int:
        drains = [
            asyncio.create_task(self._drain(self.process.read)),
            asyncio.create_task(self._drain(self.process.read_stderr)),
        ]
        try:
            await self.process.close_stdin()
            code = await self.process.wait()
            await asyncio.wait(drains, timeout=0.25)  # a child in the background may hold the pipe open
            return code
        finally:
            for task in drains:
                task.cancel()

    async def _drain(self, read: Any) -> None:
        while chunk := await read():
            self._kept += chunk
            if len(self._kept) > self._limit:
                self._truncated = True
                del self._kept[: len(self._kept) - self._limit]

    def output(self) -> dict[str, Any]:
        kept = bytes(self._kept)
        if self._truncated:  # not in the middle of a character
            kept = kept[next((i for i, byte in enumerate(kept[:4]) if byte & 0xC0 != 0x80), 0) :]
        found: dict[str, Any] = {"output": kept.decode("utf-8", "replace"), "truncated": self._truncated}
        if self._exit.done():
            found["exitStatus"] = _exit_status(self._exit)
        return found

    async def wait(self) -> dict[str, Any]:
        await asyncio.wait({self._exit})
        return _exit_status(self._exit)

    async def close(self) -> None:
        try:
            await self.process.kill()
        finally:
            self._exit.cancel()
            await asyncio.gather(self._exit, return_exceptions=True)


def _exit_status(task: asyncio.Task[int]) -> dict[str, Any]:
    if task.cancelled() or task.exception() is not None:
        return {"exitCode": None, "signal": None}
    code = task.result()
    if code >= 0:
        return {"exitCode": code, "signal": None}
    return {"exitCode": None, "signal": signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)}


def _path(params: Mapping[str, Any]) -> str:
    path = params.get("path")
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        raise MethodError(INVALID_PARAMS, "path must be absolute")
    return path


def _count(params: Mapping[str, Any], name: str) -> int | None:
    value = params.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and "\0" not in item for item in value)


def _env(value: Any) -> dict[str, str]:
    pairs = value if isinstance(value, list) else []
    return {
        p["name"]: p["value"]
        for p in pairs
        if isinstance(p, Mapping) and isinstance(p.get("name"), str) and isinstance(p.get("value"), str)
    }
