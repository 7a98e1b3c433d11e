"""What every protocol server does: open the boxes, serve, tell where it is, and end with its owner."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any, Protocol

from aiohttp import web

from benchflow_testing_clouds.backing import Backing
from benchflow_testing_clouds.control import control_app
from benchflow_testing_clouds.ledger import Ledger

__all__ = ["CloudServer", "listen", "serve"]


class CloudServer(Protocol):
    """One vendor's server. `start` returns the address and the variables that point the vendor's SDK at it."""

    async def start(self) -> tuple[str, dict[str, str]]: ...

    async def stop(self) -> None: ...

    def state(self) -> dict[str, Any]:
        """More for the control port to tell."""


async def listen(app: web.Application, port: int = 0) -> tuple[web.AppRunner, int]:
    """Serve an application on this machine's loopback."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
    await site.start()
    assert site._server is not None
    return runner, site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]


async def serve(server: CloudServer, backing: Backing, ledger: Ledger) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    loop.add_reader(sys.stdin.fileno(), lambda: stop.set() if not os.read(sys.stdin.fileno(), 4096) else None)
    await backing.open()
    control, port = await listen(control_app(ledger, backing, server.state))
    try:
        url, env = await server.start()
        told = {"url": url, "control": f"http://127.0.0.1:{port}", "env": env}
        print(json.dumps(told), flush=True)
        await stop.wait()
    finally:
        await server.stop()
        await control.cleanup()
        await backing.close()
