"""A Daytona on this machine: the vendor's routes and models, with real boxes behind them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import socketio
from aiohttp import web

from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.backing import Backing
from benchflow_testing_clouds.daytona.api import DaytonaApi
from benchflow_testing_clouds.daytona.schema import known_route
from benchflow_testing_clouds.daytona.state import DaytonaRefusal, DaytonaWorld, Quota
from benchflow_testing_clouds.daytona.storage import Storage
from benchflow_testing_clouds.daytona.toolbox import Toolbox
from benchflow_testing_clouds.ledger import Fault, Ledger
from benchflow_testing_clouds.serving import listen

__all__ = ["DaytonaServer", "make"]

KEY = "dtn_local_test_key"


class DaytonaServer:
    def __init__(self, backing: Backing, ledger: Ledger, port: int) -> None:
        self._backing, self._ledger, self._port = backing, ledger, port
        self.world = DaytonaWorld(backing, Quota())
        self._events = socketio.AsyncServer(async_mode="aiohttp", cors_allowed_origins="*")
        self._api = DaytonaApi(self.world, ledger, self._emit)
        self._toolboxes: dict[str, Toolbox] = {}
        self._runner: web.AppRunner | None = None

    async def _emit(self, name: str, data: Any) -> None:
        await self._events.emit(name, data)

    async def start(self) -> tuple[str, dict[str, str]]:
        app = web.Application(client_max_size=1 << 31, middlewares=[self._guard])
        self.world.storage = Storage(self._backing.folder("storage"), self._ledger)
        self._events.attach(app, socketio_path="/api/socket.io")
        app.add_subapp("/storage", self.world.storage.app())
        app.router.add_route("*", "/api{path:/.*}", self._control)
        app.router.add_route("*", "/toolbox/{sandbox}{path:/.*}", self._tools)
        self._runner, port = await listen(app, self._port)
        self._api.base = base = f"http://127.0.0.1:{port}"
        return base, {"DAYTONA_API_URL": f"{base}/api", "DAYTONA_API_KEY": KEY, "DAYTONA_TARGET": "us"}

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def state(self) -> dict[str, Any]:
        return {
            "snapshots": sorted(found.name for found in self.world.snapshots.values()),
            "sandboxes": {found.id: found.asked.to_dict() for found in self.world.sandboxes.values()},
        }

    # --- requests --------------------------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if not request.path.startswith(("/api/", "/toolbox/")) or request.path.startswith("/api/socket.io"):
            if request.path.startswith(("/api/socket.io", "/storage/")):
                answer: web.StreamResponse = await handler(request)
                return answer
            self._ledger.violation(f"{request.method} {request.path}: no such route")
            return _refusal(404, "Not Found")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return _refusal(401, "Invalid credentials")
        answer = await handler(request)
        return answer

    async def _control(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, request.match_info["path"], None)

    async def _tools(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, request.match_info["path"], request.match_info["sandbox"])

    async def _answer(self, request: web.Request, path: str, sandbox: str | None) -> web.StreamResponse:
        route = known_route(request.method, path, toolbox=sandbox is not None)
        if route is None:
            self._ledger.violation(f"{request.method} {request.path}: no such route")
            return _refusal(404, "Not Found")
        fault = self._ledger.count(route)
        if fault is not None and (broken := await self._break(request, fault, sandbox)) is not None:
            return broken
        began = self._ledger.enter(route)
        try:
            if sandbox is None:
                return await self._api.handle(request, request.method, path, fault)
            return await self._toolbox(sandbox).handle(request, request.method, path, fault)
        except DaytonaRefusal as error:
            return _refusal(error.status, error.message, error.code)
        except NotImplementedError:
            self._ledger.violation(f"{route}: the vendor has it, this server has not")
            return _refusal(501, "not implemented here")
        except BenchflowError as error:
            return _refusal(502, f"the sandbox does not answer: {error.message}")
        finally:
            self._ledger.leave(route, began)

    def _toolbox(self, name: str) -> Toolbox:
        sandbox = self.world.sandbox(name)
        if sandbox.box is None or sandbox.state != "started":
            raise DaytonaRefusal(400, f"Sandbox is not running: {sandbox.state}")
        found = self._toolboxes.get(sandbox.id)
        if found is None:
            for gone in self._toolboxes.keys() - self.world.sandboxes.keys():
                del self._toolboxes[gone]
            self._toolboxes[sandbox.id] = found = Toolbox(sandbox.box, self._ledger)
        return found

    async def _break(self, request: web.Request, fault: Fault, sandbox: str | None) -> web.StreamResponse | None:
        """What a fault does before the request is handled."""
        if fault.die and sandbox is not None:
            with contextlib.suppress(DaytonaRefusal):
                known = self.world.sandbox(sandbox)
                await self.world.remove(known)
        if fault.status:
            answer = _refusal(fault.status, fault.body or f"fault {fault.status}")
            if fault.retry_after is not None:
                answer.headers["Retry-After"] = f"{fault.retry_after:g}"
            return answer
        if fault.drop:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault.delay and not request.path.endswith(("/sandbox", "/snapshots")):
            await asyncio.sleep(fault.delay)
        return None


def _refusal(status: int, message: str, code: str = "") -> web.Response:
    content = {"statusCode": status, "message": message, "error": message, "source": "DAYTONA_API"}
    if code:
        content["code"] = code
    return web.json_response(content, status=status)


def make(backing: Backing, ledger: Ledger, port: int) -> DaytonaServer:
    return DaytonaServer(backing, ledger, port)
