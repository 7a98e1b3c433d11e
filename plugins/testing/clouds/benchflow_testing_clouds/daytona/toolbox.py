"""The toolbox of a sandbox: commands, sessions whose output is streamed, terminals, files."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import BodyPartReader, web
from daytona_toolbox_api_client_async import (
    Command,
    CreateSessionRequest,
    ExecuteRequest,
    ExecuteResponse,
    FileInfo,
    PtyListResponse,
    PtyResizeRequest,
    Session,
    SessionCommandLogsResponse,
    SessionExecuteRequest,
    SessionExecuteResponse,
    SessionSendInputRequest,
)

from benchflow_core.contracts import Process
from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.backing import BackedBox
from benchflow_testing_clouds.daytona.schema import parse, render
from benchflow_testing_clouds.daytona.state import DaytonaRefusal
from benchflow_testing_clouds.daytona.terminals import Terminals, envs_of
from benchflow_testing_clouds.ledger import Fault, Ledger

__all__ = ["Toolbox"]

_OUT, _ERR = b"\x01\x01\x01", b"\x02\x02\x02"
"""Before each piece of output in a log, as the daemon marks them."""
_STAT = "stat -c '%F|%s|%a|%U|%G|%Y' -- "
_IN_SESSION = '[ ! -f $1 ] || { . $1; cd "$PWD"; }; trap \'export -p > $1\' EXIT; eval "$2"'
"""A session is one shell: directory and variables last from one command to the next."""


@dataclass
class SessionCommand:
    id: str
    text: str
    process: Process
    log: bytearray = field(default_factory=bytearray)
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    exit_code: int | None = None
    more: asyncio.Condition = field(default_factory=asyncio.Condition)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def dto(self) -> dict[str, Any]:
        return render(Command, id=self.id, command=self.text, exit_code=self.exit_code)


class Toolbox:
    """The toolbox API of one box."""

    def __init__(self, box: BackedBox, ledger: Ledger) -> None:
        self._box, self._ledger = box, ledger
        self.terminals = Terminals(box)
        self._sessions: dict[str, dict[str, SessionCommand]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, request: web.Request, method: str, path: str, fault: Fault | None) -> web.StreamResponse:
        parts = path.strip("/").split("/")
        if parts[:2] == ["process", "pty"]:
            return await self._pty(request, method, parts[2:], fault)
        if parts[:2] == ["process", "session"]:
            return await self._session(request, method, parts[2:], fault)
        if (method, path) == ("POST", "/process/execute"):
            return await self._execute(request)
        if parts[0] == "files":
            return await self._files(request, method, parts[1:], fault)
        raise NotImplementedError

    async def _body(self, request: web.Request, model: Any) -> Any:
        try:
            return parse(model, await request.json(), self._ledger, f"{request.method} {request.path}")
        except ValueError as error:
            raise DaytonaRefusal(400, str(error)) from error

    # --- commands --------------------------------------------------------------------------------------------------

    async def _execute(self, request: web.Request) -> web.Response:
        asked = await self._body(request, ExecuteRequest)
        done = await self._box.shell(asked.command, cwd=asked.cwd or None, env=asked.envs, timeout=asked.timeout or 10)
        if done.timed_out:
            raise DaytonaRefusal(408, "command execution timeout")
        text = (done.stdout + done.stderr).decode(errors="replace")
        return web.json_response(render(ExecuteResponse, exit_code=done.exit_code, result=text))

    async def _session(
        self, request: web.Request, method: str, parts: list[str], fault: Fault | None
    ) -> web.StreamResponse:
        if not parts:
            if method == "GET":
                return web.json_response([self._dto(name) for name in self._sessions])
            asked = await self._body(request, CreateSessionRequest)
            if asked.session_id in self._sessions:
                raise DaytonaRefusal(409, "session already exists")
            self._sessions[asked.session_id] = {}
            return web.json_response(None, status=201)
        commands = self._sessions.get(parts[0])
        if commands is None:
            raise DaytonaRefusal(404, "session not found")
        if parts[1:] == ["exec"]:
            return await self._run(request, parts[0], commands)
        if parts[1:2] == ["command"]:
            running = commands.get(parts[2])
            if running is None:
                raise DaytonaRefusal(404, "command not found")
            return await self._command(request, parts[3:], running, fault)
        if method == "DELETE":
            for running in self._sessions.pop(parts[0]).values():
                await running.process.kill()
            return web.Response(status=204)
        return web.json_response(self._dto(parts[0]))

    def _dto(self, name: str) -> dict[str, Any]:
        commands = [Command.from_dict(running.dto()) for running in self._sessions[name].values()]
        return render(Session, session_id=name, commands=commands)

    async def _run(self, request: web.Request, session: str, commands: dict[str, SessionCommand]) -> web.Response:
        asked = await self._body(request, SessionExecuteRequest)
        state = f"/tmp/.session-{session.encode().hex()}"
        process = await self._box.spawn(["sh", "-c", _IN_SESSION, "session", state, asked.command])
        running = SessionCommand(str(uuid.uuid4()), asked.command, process)
        commands[running.id] = running
        task = asyncio.ensure_future(_collect(running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if asked.run_async or asked.var_async:
            return web.json_response(render(SessionExecuteResponse, cmd_id=running.id), status=202)
        await running.done.wait()
        out, err = running.out.decode(errors="replace"), running.err.decode(errors="replace")
        return web.json_response(
            render(
                SessionExecuteResponse,
                cmd_id=running.id,
                exit_code=running.exit_code,
                output=out + err,
                stdout=out,
                stderr=err,
            )
        )

    async def _command(
        self, request: web.Request, parts: list[str], running: SessionCommand, fault: Fault | None
    ) -> web.StreamResponse:
        if parts == ["input"]:
            asked = await self._body(request, SessionSendInputRequest)
            if running.exit_code is not None:
                raise DaytonaRefusal(410, "command already completed")
            await running.process.write(asked.data.encode())
            return web.Response(status=204)
        if parts == ["logs"]:
            if request.headers.get("Upgrade", "").lower() == "websocket":
                return await _follow(request, running, fault)
            out, err = running.out.decode(errors="replace"), running.err.decode(errors="replace")
            return web.json_response(render(SessionCommandLogsResponse, output=out + err, stdout=out, stderr=err))
        return web.json_response(running.dto())

    # --- terminals -------------------------------------------------------------------------------------------------

    async def _pty(
        self, request: web.Request, method: str, parts: list[str], fault: Fault | None
    ) -> web.StreamResponse:
        known = self.terminals.known
        if not parts and method == "GET":
            sessions = [terminal.dto() for terminal in known.values()]
            listed = PtyListResponse.from_dict({"sessions": sessions})
            assert listed is not None
            return web.json_response(listed.to_dict())
        if parts == ["create-connect"]:
            if not request.query.get("id"):
                raise DaytonaRefusal(400, "id is required")
            if request.query["id"] in known:
                raise DaytonaRefusal(409, "PTY session already exists")
            terminal = await self.terminals.create(request.query, envs_of(request))
            return await self.terminals.attach(terminal, request, fault)
        found = known.get(parts[0]) if parts else None
        if found is None:
            raise DaytonaRefusal(404, "PTY session not found")
        if parts[1:] == ["connect"]:
            return await self.terminals.attach(found, request, fault)
        if parts[1:] == ["resize"]:
            asked = await self._body(request, PtyResizeRequest)
            found.columns, found.rows = asked.cols, asked.rows
        elif method == "DELETE":
            await self.terminals.kill(found)
            return web.json_response({"message": "PTY session deleted"})
        return web.json_response(found.dto())

    # --- files -----------------------------------------------------------------------------------------------------

    async def _files(
        self, request: web.Request, method: str, parts: list[str], fault: Fault | None
    ) -> web.StreamResponse:
        path = request.query.get("path", "")
        if parts == ["bulk-upload"]:
            return await self._upload(request)
        if parts == ["bulk-download"]:
            return await self._download(request, fault)
        if parts == ["folder"]:
            mode = request.query["mode"]
            await self._shell(f"mkdir -p -- {shlex.quote(path)} && chmod {shlex.quote(mode)} -- {shlex.quote(path)}")
            return web.Response(status=201)
        if parts == ["info"]:
            return web.json_response(await self._info(path))
        if not parts and method == "DELETE":
            await self._shell(f"rm -rf -- {shlex.quote(path)}")
            return web.Response(status=204)
        if not parts and method == "GET":
            listed = await self._shell(f"find {shlex.quote(path)} -mindepth 1 -maxdepth 1 -print0")
            return web.json_response([await self._info(name) for name in sorted(listed.split("\0")) if name])
        raise NotImplementedError

    async def _shell(self, command: str) -> str:
        done = await self._box.shell(command)
        if done.exit_code:
            raise DaytonaRefusal(
                404 if b"No such file" in done.stderr else 400, done.stderr.decode(errors="replace").strip()
            )
        return done.stdout.decode(errors="replace")

    async def _info(self, path: str) -> dict[str, Any]:
        found = (await self._shell(_STAT + shlex.quote(path))).strip().split("|")
        kind, size, mode, owner, group, when = found
        return render(
            FileInfo,
            name=Path(path).name,
            is_dir=kind == "directory",
            size=int(size),
            mode=mode.zfill(4),
            permissions=mode.zfill(4),
            owner=owner,
            group=group,
            mod_time=when,
        )

    async def _upload(self, request: web.Request) -> web.Response:
        """Destination and content come in turn."""
        reader = await request.multipart()
        target = ""
        while (part := await reader.next()) is not None:
            assert isinstance(part, BodyPartReader)
            if (part.name or "").endswith(".path"):
                target = await part.text()
            elif (part.name or "").endswith(".file"):
                with tempfile.NamedTemporaryFile() as file:
                    while data := await part.read_chunk(1 << 18):
                        file.write(data)
                    file.flush()
                    await self._box.sandbox.upload(Path(file.name), target, mode=0o644)
        return web.Response(status=200)

    async def _download(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        paths = (await request.json())["paths"]
        boundary = uuid.uuid4().hex
        response = web.StreamResponse(headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
        await response.prepare(request)
        left = fault.after_bytes if fault is not None else None
        with tempfile.TemporaryDirectory() as folder:
            for number, path in enumerate(paths):
                target = Path(folder, str(number))
                try:
                    await self._box.sandbox.download(path, target)
                    name, data = "file", target.read_bytes()
                except (FileNotFoundError, BenchflowError) as error:
                    name, data = "error", str(error).encode()
                said = path.replace("\\", "\\\\").replace('"', '\\"')
                head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{said}"\r\n\r\n'
                body = head.encode() + data + b"\r\n"
                if left is not None and len(body) > left:
                    await response.write(body[:left])
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                await response.write(body)
        await response.write(f"--{boundary}--\r\n".encode())
        await response.write_eof()
        return response


async def _collect(running: SessionCommand) -> None:
    async def take(read: Any, mark: bytes, kept: bytearray) -> None:
        while data := await read():
            async with running.more:
                kept.extend(data)
                running.log.extend(mark + data)
                running.more.notify_all()

    with contextlib.suppress(BenchflowError):
        process = running.process
        await asyncio.gather(take(process.read, _OUT, running.out), take(process.read_stderr, _ERR, running.err))
        running.exit_code = await process.wait()
    if running.exit_code is None:
        running.exit_code = 137
    running.done.set()
    async with running.more:
        running.more.notify_all()


async def _follow(request: web.Request, running: SessionCommand, fault: Fault | None) -> web.WebSocketResponse:
    """From the beginning, until the command has ended."""
    socket = web.WebSocketResponse(heartbeat=30)
    await socket.prepare(request)
    sent, limit = 0, fault.after_bytes if fault is not None else None
    while True:
        async with running.more:
            while sent == len(running.log) and running.exit_code is None:
                await running.more.wait()
            data = bytes(running.log[sent:])
        if limit is not None and sent + len(data) > limit:
            await socket.send_bytes(data[: max(0, limit - sent)])
            assert request.transport is not None
            request.transport.abort()
            return socket
        if data:
            await socket.send_bytes(data)
            sent += len(data)
        elif running.exit_code is not None:
            await socket.close()
            return socket
