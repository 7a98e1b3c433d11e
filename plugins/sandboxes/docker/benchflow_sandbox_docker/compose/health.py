"""How far a service is: started, healthy, or completed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from benchflow_core.errors import TaskError
from benchflow_sandbox_docker.compose.model import Health
from benchflow_sandbox_docker.compose.program import ProgramHost, ServiceProgram

__all__ = ["image_health", "wait_completed", "wait_healthy"]

_OFTEN = 0.25
_NANO = 1e9


def image_health(config: Mapping[str, Any] | None) -> Health | None:
    """The image's own HEALTHCHECK, in the engine's words."""
    test = (config or {}).get("Test") or []
    if not config or len(test) < 2 or test[0] not in ("CMD", "CMD-SHELL"):
        return None
    argv = ("/bin/sh", "-c", test[1]) if test[0] == "CMD-SHELL" else tuple(test[1:])
    return Health(
        argv,
        interval=config.get("Interval", 0) / _NANO or 30.0,
        timeout=config.get("Timeout", 0) / _NANO or 30.0,
        retries=config.get("Retries") or 3,
        start_period=config.get("StartPeriod", 0) / _NANO,
    )


async def wait_healthy(name: str, place: ProgramHost, program: ServiceProgram, health: Health) -> None:
    """Asks more often than the file says, but gives up no sooner: a ready service is not waited out."""
    until = time.monotonic() + health.start_period + health.retries * (health.interval + health.timeout)
    while True:
        done = await place.exec(health.argv, timeout=health.timeout)
        if done.exit_code == 0 and not done.timed_out:
            return
        said = "it timed out" if done.timed_out else _tail(done.stderr or done.stdout) or f"exit code {done.exit_code}"
        if program.ended.done():
            raise TaskError(f"service '{name}' ended before it was healthy{_code(program)}: {_tail(program.log())}")
        if time.monotonic() > until:
            raise TaskError(f"service '{name}' did not become healthy: {said}; it printed: {_tail(program.log())}")
        await asyncio.sleep(min(health.interval, health.start_interval, _OFTEN))


async def wait_completed(name: str, program: ServiceProgram) -> None:
    code = await asyncio.shield(program.ended)
    if code != 0:
        raise TaskError(f"service '{name}' should complete, but ended with {code}: {_tail(program.log())}")


def _code(program: ServiceProgram) -> str:
    return f" with {program.ended.result()}" if not program.ended.cancelled() else ""


def _tail(output: bytes, limit: int = 300) -> str:
    text = " ".join(output.decode("utf-8", "replace").split())
    return text if len(text) <= limit else "…" + text[-limit:]
