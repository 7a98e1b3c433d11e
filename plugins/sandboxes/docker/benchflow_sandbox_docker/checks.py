"""Lines for `bench plugins doctor`."""

from __future__ import annotations

import asyncio
import time

from benchflow_boxkit.interpreter import machine

from benchflow_core.contracts.common import Check
from benchflow_core.errors import BenchflowError
from benchflow_sandbox_docker import leases
from benchflow_sandbox_docker.engine import host
from benchflow_sandbox_docker.engine.api import EngineClient

__all__ = ["run"]


def run() -> list[Check]:
    if not host.available().ok:
        return []
    try:
        return asyncio.run(_run())
    except BenchflowError as error:
        return [Check("engine", "fail", error.message, error.remedy or "")]


async def _run() -> list[Check]:
    engine = EngineClient(host.find())
    version = await engine.version()
    name = "Podman" if await engine.is_podman() else "Docker"
    found = [Check("engine", "ok", f"{name} {version.get('Version', '?')}, API {version.get('ApiVersion', '?')}")]
    here, there = machine(), str(version.get("Arch", ""))
    if there in ("", here):
        found.append(Check("platform", "ok", f"linux/{here}"))
    else:
        text = f"the engine runs on {there}, this host on {here}"
        found.append(Check("platform", "fail", text, "Run bench on a machine like the engine's."))
    dead = [
        lease
        async for lease in leases.list_leases()
        if lease.owner_alive is False
        or (lease.owner_alive is None and lease.expires_at is not None and lease.expires_at < time.time())
    ]
    if dead:
        text = f"{len(dead)} objects of runs that were killed, or too old"
        found.append(Check("leftovers", "warn", text, "They go with the next run, or with bench sandbox cleanup."))
    else:
        found.append(Check("leftovers", "ok", "none"))
    return found
