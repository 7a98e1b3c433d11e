"""An E2B on this machine: the vendor's routes and messages, with real boxes behind them."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.parse
from typing import Any

from aiohttp import web

from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.backing import Backing
from benchflow_testing_clouds.e2b.api import E2bApi
from benchflow_testing_clouds.e2b.files import EnvdFiles
from benchflow_testing_clouds.e2b.processes import Processes, user_of
from benchflow_testing_clouds.e2b.sandboxes import Sandboxes
from benchflow_testing_clouds.e2b.schema import E2bRefusal, known_route
from benchflow_testing_clouds.e2b.templates import Templates
from benchflow_testing_clouds.ledger import Fault, Ledger
from benchflow_testing_clouds.serving import listen

__all__ = ["E2BServer", "make"]

KEY = "e2b_" + "5" * 40
_CONNECT_CODES = {400: "invalid_argument", 403: "permission_denied", 404: "not_found", 409: "already_exists"}


class E2BServer:
    """One port for the control API, one for envd of all sandboxes: a header says which is meant."""

    def __init__(self, backing: Backing, ledger: Ledger, port: int) -> None:
        self._backing, self._ledger, self._port = backing, ledger, port
        self.templates = Templates(backing)
        self.sandboxes = Sandboxes(backing, self.templates)
        self._api = E2bApi(self.sandboxes, self.templates, ledger)
        self._inside: dict[str, tuple[Processes, EnvdFiles]] = {}
        self._runners: list[web.AppRunner] = []

    async def start(self) -> tuple[str, dict[str, str]]:
        control = web.Application(client_max_size=1 << 31)
        control.router.add_put("/upload/{digest}", self._upload)
        control.router.add_route("*", "/{path:.*}", self._control)
        envd = web.Application(client_max_size=1 << 31)
        envd.router.add_route("*", "/{path:.*}", self._envd)
        runner, port = await listen(control, self._port)
        self._runners.append(runner)
        runner, inside = await listen(envd)
        self._runners.append(runner)
        self._api.base = base = f"http://127.0.0.1:{port}"
        return base, {
            "E2B_API_URL": base,
            "E2B_SANDBOX_URL": f"http://127.0.0.1:{inside}",
            "E2B_API_KEY": KEY,
            "E2B_HTTP_VERSION": "1.1",
        }

    async def stop(self) -> None:
        for sandbox in list(self.sandboxes.known.values()):
            if sandbox.expiry is not None:
                sandbox.expiry.cancel()
        for runner in self._runners:
            await runner.cleanup()

    def state(self) -> dict[str, Any]:
        return {
            "templates": sorted(found.name for found in self.templates.known.values()),
            "sandboxes": {
                found.id: {**found.asked.to_dict(), "ends": found.end.timestamp()}
                for found in self.sandboxes.known.values()
            },
        }

    # --- requests --------------------------------------------------------------------------------------------------

    async def _upload(self, request: web.Request) -> web.Response:
        digest = request.match_info["digest"]
        fault = self._ledger.count("PUT /upload")
        if fault is not None and fault.status:
            return web.Response(status=fault.status)
        if not digest.isalnum() or request.content_length is None:
            self._ledger.violation("PUT /upload: a digest and a length are wanted")
            return web.Response(status=411)
        with self.templates.place(digest).open("wb") as file:
            async for data in request.content.iter_chunked(1 << 18):
                file.write(data)
        self.templates.keep(digest)
        return web.Response()

    async def _control(self, request: web.Request) -> web.StreamResponse:
        raw = request.raw_path.partition("?")[0]
        route = known_route(request.method, raw, envd=False)
        if route is None:
            return self._unknown(request)
        if request.headers.get("X-API-KEY") != KEY:
            return _refusal(401, "Invalid API key")
        parts = [urllib.parse.unquote(part) for part in raw.strip("/").split("/")]
        return await self._answer(request, route, "", lambda _: self._api.handle(request, parts))

    async def _envd(self, request: web.Request) -> web.StreamResponse:
        route = known_route(request.method, request.path, envd=True)
        if route is None or request.headers.get("E2b-Sandbox-Port") != "49983":
            return self._unknown(request)
        identity = request.headers.get("E2b-Sandbox-Id", "")

        async def inside(fault: Fault | None) -> web.StreamResponse:
            sandbox = self.sandboxes.known.get(identity)
            if sandbox is None:
                return web.json_response(
                    {"sandboxId": identity, "message": "The sandbox was not found", "code": 502}, status=502
                )
            if request.headers.get("X-Access-Token") != sandbox.token:
                raise E2bRefusal(401, "unauthorized")
            if request.path == "/health":
                return web.Response(status=204)
            processes, files = self._of(identity)
            if request.path == "/files":
                return await files.http(request, fault)
            service, _, name = request.path[1:].partition("/")
            if service == "process.Process":
                return await processes.handle(request, name, fault)
            return await files.handle(name, await request.read(), user_of(request))

        return await self._answer(request, route, identity, inside)

    def _of(self, identity: str) -> tuple[Processes, EnvdFiles]:
        for gone in self._inside.keys() - self.sandboxes.known.keys():
            del self._inside[gone]
        if identity not in self._inside:
            sandbox = self.sandboxes.known[identity]
            box, user, workdir = sandbox.box, sandbox.template.user, sandbox.template.workdir
            self._inside[identity] = (
                Processes(box, user, workdir, self._ledger),
                EnvdFiles(box, user, self._ledger),
            )
        return self._inside[identity]

    def _unknown(self, request: web.Request) -> web.Response:
        self._ledger.violation(f"{request.method} {request.path}: no such route")
        return _refusal(404, "Not Found")

    async def _answer(self, request: web.Request, route: str, identity: str, handle: Any) -> web.StreamResponse:
        fault = self._ledger.count(route)
        if fault is not None and (broken := await self._break(request, fault, identity)) is not None:
            return broken
        began = self._ledger.enter(route)
        try:
            answer: web.StreamResponse = await handle(fault)
            return answer
        except E2bRefusal as error:
            return _refusal(error.status, error.text, rpc="." in request.path)
        except NotImplementedError:
            self._ledger.violation(f"{route}: the vendor has it, this server has not")
            return _refusal(501, "not implemented here")
        except ValueError as error:
            self._ledger.violation(f"{route}: {error}")
            return _refusal(400, str(error))
        except ConnectionResetError:  # the client is gone
            return web.Response()
        except BenchflowError as error:
            return _refusal(502, f"The sandbox is running but port is not open: {error.message}")
        finally:
            self._ledger.leave(route, began)

    async def _break(self, request: web.Request, fault: Fault, identity: str) -> web.StreamResponse | None:
        """What a fault does before the request is handled."""
        if fault.die and identity in self.sandboxes.known:
            with contextlib.suppress(BenchflowError):
                await self.sandboxes.remove(self.sandboxes.known[identity])
        if fault.status:
            answer = _refusal(fault.status, fault.body or f"fault {fault.status}")
            if fault.retry_after is not None:
                answer.headers["Retry-After"] = f"{fault.retry_after:g}"
            return answer
        if fault.drop:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault.delay:
            await asyncio.sleep(fault.delay)
        return None


def _refusal(status: int, text: str, *, rpc: bool = False) -> web.Response:
    code: Any = _CONNECT_CODES.get(status, status) if rpc else status
    return web.json_response({"code": code, "message": text}, status=status)


def make(backing: Backing, ledger: Ledger, port: int) -> E2BServer:
    return E2BServer(backing, ledger, port)
