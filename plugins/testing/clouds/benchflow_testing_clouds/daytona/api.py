"""The control API: sandboxes and snapshots."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from aiohttp import web
from daytona_api_client_async import (
    CreateSandbox,
    CreateSnapshot,
    ListSandboxesResponse,
    PaginatedSnapshots,
    SandboxLabels,
    StorageAccessDto,
    ToolboxProxyUrl,
    UpdateSandboxNetworkSettings,
    Url,
)

from benchflow_testing_clouds.daytona.schema import parse, render
from benchflow_testing_clouds.daytona.state import (
    ORGANIZATION,
    DaytonaRefusal,
    DaytonaWorld,
    KnownSandbox,
    KnownSnapshot,
)
from benchflow_testing_clouds.ledger import Fault, Ledger

__all__ = ["DaytonaApi"]

_PAGE = 100


class DaytonaApi:
    def __init__(self, world: DaytonaWorld, ledger: Ledger, emit: Any) -> None:
        self.world, self.ledger, self._emit = world, ledger, emit
        self.base = ""
        self._tasks: set[asyncio.Task[None]] = set()

    def _background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _body(self, request: web.Request, model: Any) -> Any:
        try:
            return parse(model, await request.json(), self.ledger, f"{request.method} {request.path}")
        except ValueError as error:
            raise DaytonaRefusal(400, str(error)) from error

    async def handle(self, request: web.Request, method: str, path: str, fault: Fault | None) -> web.StreamResponse:
        parts = path.strip("/").split("/")
        if path == "/object-storage/push-access":
            return self._push_access()
        if parts[0] == "sandbox":
            return await self._sandbox(request, method, parts[1:], fault)
        if parts[0] == "snapshots":
            return await self._snapshot(request, method, parts[1:], fault)
        raise NotImplementedError

    def _push_access(self) -> web.Response:
        content = render(
            StorageAccessDto,
            access_key="local",
            secret="local",
            session_token="local",
            storage_url=f"{self.base}/storage",
            organization_id=ORGANIZATION,
            bucket="builds",
            region="us-east-1",
        )
        return web.json_response(content)

    def dto(self, sandbox: KnownSandbox) -> dict[str, Any]:
        return sandbox.dto(f"{self.base}/toolbox")

    # --- sandboxes -------------------------------------------------------------------------------------------------

    async def _sandbox(
        self, request: web.Request, method: str, parts: list[str], fault: Fault | None
    ) -> web.StreamResponse:
        if not parts:
            return await (self._create(request, fault) if method == "POST" else self._list(request))
        sandbox = self.world.sandbox(parts[0])
        sandbox.activity = time.time()
        if len(parts) == 1:
            if method == "DELETE":
                sandbox.state = "destroying"
                told = self.dto(sandbox)
                await self.world.remove(sandbox)
                await self._tell(sandbox)
                return web.json_response(told)
            return web.json_response(self.dto(sandbox))
        return await self._change(request, sandbox, parts[1:])

    async def _create(self, request: web.Request, fault: Fault | None) -> web.Response:
        asked = await self._body(request, CreateSandbox)
        sandbox = self.world.add_sandbox(asked)
        starting = asyncio.ensure_future(self._start(sandbox, fault.delay if fault else 0.0))
        self._tasks.add(starting)
        starting.add_done_callback(self._tasks.discard)
        if not (fault and fault.delay):
            # As from a warm pool: the answer waits a little for the box.
            await asyncio.wait({starting}, timeout=20)
        if sandbox.state in ("error", "build_failed"):
            return web.json_response(self.dto(sandbox), status=200)
        return web.json_response(self.dto(sandbox))

    async def _start(self, sandbox: KnownSandbox, delay: float) -> None:
        await asyncio.sleep(delay)
        await self.world.start(sandbox)
        await self._tell(sandbox)

    async def _tell(self, sandbox: KnownSandbox) -> None:
        data = {"sandbox": self.dto(sandbox), "oldState": "creating", "newState": sandbox.state}
        await self._emit("sandbox.state.updated", data)

    async def _list(self, request: web.Request) -> web.Response:
        labels = json.loads(request.query.get("labels") or "{}")
        rows = [
            self.dto(found)
            for found in sorted(self.world.sandboxes.values(), key=lambda found: (found.created, found.id))
            if labels.items() <= (found.asked.labels or {}).items()
        ]
        start, limit = int(request.query.get("cursor") or 0), int(request.query.get("limit") or _PAGE)
        page, rest = rows[start : start + limit], rows[start + limit :]
        answer = ListSandboxesResponse.from_dict({"items": page, "nextCursor": str(start + limit) if rest else None})
        assert answer is not None
        return web.json_response(answer.to_dict())

    async def _change(self, request: web.Request, sandbox: KnownSandbox, parts: list[str]) -> web.Response:
        what = parts[0]
        if what == "toolbox-proxy-url":
            return web.json_response(render(ToolboxProxyUrl, url=f"{self.base}/toolbox"))
        if what == "labels":
            sandbox.asked.labels = dict((await self._body(request, SandboxLabels)).labels)
            return web.json_response({"labels": sandbox.asked.labels})
        if what == "last-activity":
            return web.Response(status=201)
        if what == "network-settings":
            asked = await self._body(request, UpdateSandboxNetworkSettings)
            if asked.network_block_all is not None:
                sandbox.blocked = bool(asked.network_block_all)
            sandbox.allow = asked.network_allow_list or sandbox.allow
            if sandbox.box is not None:
                await sandbox.box.set_public(not sandbox.blocked)
        elif what == "autostop":
            sandbox.asked.auto_stop_interval = int(parts[1])
        elif what == "autodelete":
            sandbox.asked.auto_delete_interval = int(parts[1])
        elif what == "ttl":
            sandbox.asked.ttl_minutes = int(parts[1])
        elif what == "stop":
            sandbox.state = "stopped"
            await self.world.backing.stop(sandbox.id)
            if sandbox.asked.auto_delete_interval == 0:
                await self.world.remove(sandbox)
            await self._tell(sandbox)
        else:
            raise NotImplementedError
        return web.json_response(self.dto(sandbox))

    # --- snapshots -------------------------------------------------------------------------------------------------

    async def _snapshot(
        self, request: web.Request, method: str, parts: list[str], fault: Fault | None
    ) -> web.StreamResponse:
        if not parts:
            if method == "GET":
                return self._page(request)
            snapshot = self.world.add_snapshot(await self._body(request, CreateSnapshot))
            self._background(self._make(snapshot, fault.delay if fault else 0.0))
            return web.json_response(snapshot.dto())
        snapshot = self.world.snapshot(parts[0])
        if parts[1:] == ["build-logs-url"]:
            return web.json_response(render(Url, url=f"{self.base}/api/snapshots/{snapshot.id}/build-logs"))
        if parts[1:] == ["build-logs"]:
            while snapshot.state in ("pending", "building", "pulling"):
                await asyncio.sleep(0.05)
            return web.Response(text=snapshot.log)
        if parts[1:]:
            raise NotImplementedError
        if method == "DELETE":
            del self.world.snapshots[snapshot.id]
            return web.Response(status=204)
        return web.json_response(snapshot.dto())

    async def _make(self, snapshot: KnownSnapshot, delay: float) -> None:
        await asyncio.sleep(delay)
        await self.world.make(snapshot)

    def _page(self, request: web.Request) -> web.Response:
        rows = [found.dto() for found in self.world.snapshots.values()]
        name = request.query.get("name")
        rows = [row for row in rows if not name or name in row["name"]]
        limit, page = int(request.query.get("limit") or _PAGE), int(request.query.get("page") or 1)
        answer = {
            "items": rows[(page - 1) * limit : page * limit],
            "total": len(rows),
            "page": page,
            "totalPages": -(-len(rows) // limit) or 1,
        }
        PaginatedSnapshots.from_dict(answer)
        return web.json_response(answer)
