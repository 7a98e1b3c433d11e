"""Terminals of a box over websockets: a session lives on when its connection ends, and can be connected to again."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from daytona_toolbox_api_client_async import PtySessionInfo

from benchflow_core.contracts import Process
from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.backing import BackedBox
from benchflow_testing_clouds.daytona.schema import render
from benchflow_testing_clouds.ledger import Fault

__all__ = ["PtyTerminal", "Terminals"]

CONTROL = "X-Daytona-Pty-Exit-Control"
_ENVS = "X-Daytona-Pty-Envs~"


@dataclass
class PtyTerminal:
    id: str
    columns: int
    rows: int
    cwd: str
    envs: dict[str, str]
    process: Process
    created: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    client: web.WebSocketResponse | None = None
    early: deque[bytes] = field(default_factory=deque)
    """Printed before anybody was connected."""
    exit_code: int | None = None
    pump: asyncio.Task[None] | None = None
    cut_after: int | None = None

    def dto(self) -> dict[str, Any]:
        return render(
            PtySessionInfo,
            id=self.id,
            active=self.exit_code is None,
            cols=self.columns,
            rows=self.rows,
            cwd=self.cwd,
            envs=self.envs,
            created_at=self.created,
            lazy_start=False,
        )


class Terminals:
    """The terminals of one box."""

    def __init__(self, box: BackedBox) -> None:
        self._box = box
        self.known: dict[str, PtyTerminal] = {}

    async def create(self, query: Any, envs: dict[str, str]) -> PtyTerminal:
        identity = query["id"]
        columns, rows, cwd = int(query.get("cols") or 80), int(query.get("rows") or 24), query.get("cwd") or ""
        shell = ["bash", "-i"] if (await self._box.shell("command -v bash")).exit_code == 0 else ["sh", "-i"]
        process = await self._box.terminal(shell, columns=columns, rows=rows, cwd=cwd or None, env=envs)
        self.known[identity] = terminal = PtyTerminal(identity, columns, rows, cwd or "/", envs, process)
        terminal.pump = asyncio.ensure_future(self._pump(terminal))
        return terminal

    async def _pump(self, terminal: PtyTerminal) -> None:
        """What the terminal prints goes to whoever is connected; with nobody there it is lost, as with the vendor."""
        drain = asyncio.ensure_future(_drain(terminal.process))
        try:
            while data := await terminal.process.read():
                client = terminal.client
                if client is None:
                    if terminal.early is not None and sum(map(len, terminal.early)) < 1 << 16:
                        terminal.early.append(data)
                    continue
                if terminal.cut_after is not None:
                    data, rest = data[: terminal.cut_after], data[terminal.cut_after :]
                    terminal.cut_after = terminal.cut_after - len(data) if not rest else -1
                with contextlib.suppress(ConnectionError):
                    await client.send_bytes(data)
                if terminal.cut_after == -1:
                    terminal.cut_after, terminal.client = None, None
                    _cut(client)
            terminal.exit_code = await terminal.process.wait()
        except BenchflowError:
            terminal.exit_code = 137
        drain.cancel()
        if terminal.client is not None:
            code = terminal.exit_code
            with contextlib.suppress(ConnectionError):
                await terminal.client.send_str(json.dumps({"type": "control", "status": "exited", "exitCode": code}))
                await terminal.client.close(message=json.dumps({"exitCode": code}).encode())
        self.known.pop(terminal.id, None)

    async def attach(self, terminal: PtyTerminal, request: web.Request, fault: Fault | None) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=(CONTROL,), max_msg_size=1 << 26, heartbeat=30)
        await socket.prepare(request)
        await socket.send_str(json.dumps({"type": "control", "status": "connected"}))
        if fault is not None and fault.after_bytes is not None:
            terminal.cut_after = fault.after_bytes
        while terminal.early:
            await socket.send_bytes(terminal.early.popleft())
        terminal.client = socket
        async for message in socket:
            if message.type in (WSMsgType.BINARY, WSMsgType.TEXT):
                data = message.data if isinstance(message.data, bytes) else message.data.encode()
                with contextlib.suppress(BenchflowError):
                    await terminal.process.write(data)
        if terminal.client is socket:
            terminal.client = None
        return socket

    async def kill(self, terminal: PtyTerminal) -> None:
        self.known.pop(terminal.id, None)
        await terminal.process.kill()

    def cut_all(self) -> None:
        """Every connection breaks; the terminals live on."""
        for terminal in self.known.values():
            client, terminal.client = terminal.client, None
            if client is not None:
                _cut(client)


def envs_of(request: web.Request) -> dict[str, str]:
    for word in request.headers.get("Sec-WebSocket-Protocol", "").split(","):
        if word.strip().startswith(_ENVS):
            text = word.strip()[len(_ENVS) :]
            found: dict[str, str] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return found
    return {}


def _cut(socket: web.WebSocketResponse) -> None:
    request = socket._req
    if request is not None and request.transport is not None:
        request.transport.abort()


async def _drain(process: Process) -> None:
    with contextlib.suppress(BenchflowError):
        while await process.read_stderr():
            pass
