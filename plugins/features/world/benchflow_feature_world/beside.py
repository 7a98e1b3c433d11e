"""A service started right in a box, for callers that have no rollout."""

from __future__ import annotations

import asyncio

from benchflow_core.contracts import Sandbox
from benchflow_core.errors import InfrastructureError
from benchflow_feature_world.probe import http_probe, wait_for
from benchflow_feature_world.services import Service

__all__ = ["start_beside"]

_START = """
command -v "$1" >/dev/null 2>&1 || exit 127
mkdir -p /data; log=/tmp/benchflow-env-$2.log; shift 2
nohup "$@" </dev/null >"$log" 2>&1 &
"""


async def start_beside(box: Sandbox, service: Service) -> None:
    """The program has to be installed in the box; returns once it is healthy. It lives as long as the box."""
    spec = service.spec
    if spec.command is None:
        raise InfrastructureError(f"service '{service.name}' runs on the host, as part of a rollout.", retryable=False)
    argv = spec.command(service.context(program=spec.program))
    done = await box.exec(("sh", "-c", _START, "sh", spec.program, service.name, *argv), cwd="/", timeout=60)
    if done.exit_code == 127:
        raise InfrastructureError(f"{spec.program} is not installed in the box.", retryable=False)
    probe = http_probe(f"http://localhost:{service.port}{spec.health_path}")
    until = asyncio.get_running_loop().time() + spec.ready_timeout
    await wait_for(box, probe, seconds=spec.ready_timeout, until=until, python="python3", gone=lambda: None)
