"""A server's control port: what was asked of it, what is to go wrong, which boxes it has."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from benchflow_testing_clouds.backing import Backing
from benchflow_testing_clouds.ledger import Fault, Ledger

__all__ = ["Remote", "control_app"]


def control_app(ledger: Ledger, backing: Backing, more: Callable[[], dict[str, Any]] = dict) -> web.Application:
    async def state(_: web.Request) -> web.Response:
        known = {"boxes": sorted(backing.boxes), "mounts": backing.mounts}
        return web.json_response({**ledger.state(), **known, **more()})

    async def fault(request: web.Request) -> web.Response:
        ledger.faults.append(Fault(**await request.json()))
        return web.json_response({})

    async def reset(_: web.Request) -> web.Response:
        ledger.reset()
        return web.json_response({})

    async def kill(request: web.Request) -> web.Response:
        """A box ends without a word; the vendor does not know."""
        await backing.boxes[(await request.json())["box"]].die()
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/state", state)
    app.router.add_post("/fault", fault)
    app.router.add_post("/reset", reset)
    app.router.add_post("/kill", kill)
    return app


class Remote:
    """A running server, as a test sees it. Blocking, and quick: it is on this machine."""

    def __init__(self, url: str, control: str, env: dict[str, str], pid: int) -> None:
        self.url, self.env, self.pid = url, env, pid
        """`env`: variables that point the vendor's SDK here."""
        self._control = control

    def _ask(self, path: str, content: Any = None) -> Any:
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self._control + path, body, {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("/state")
        return found

    @property
    def requests(self) -> dict[str, int]:
        """Route to how often it was asked for, since the start or the last `reset`."""
        found: dict[str, int] = self.state()["requests"]
        return found

    @property
    def boxes(self) -> list[str]:
        found: list[str] = self.state()["boxes"]
        return found

    @property
    def most(self) -> dict[str, int]:
        """Route to how many were being answered at once."""
        found: dict[str, int] = self.state()["most"]
        return found

    def fault(self, route: str, **what: Any) -> None:
        self._ask("/fault", asdict(Fault(route, **what)))

    def kill(self, box: str) -> None:
        self._ask("/kill", {"box": box})

    def reset(self) -> None:
        self._ask("/reset", {})

    def check(self) -> None:
        """Fails when anything was sent that the vendor would not understand."""
        violations = self.state()["violations"]
        assert not violations, "\n".join(["the vendor would not understand:", *violations])
