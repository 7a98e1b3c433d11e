"""Is the world there? Asked of its box: HTTP and TCP through the sandbox's own door, commands by running them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchflow_core.contracts import Sandbox
from benchflow_core.errors import BenchflowError, InfrastructureError

__all__ = ["Probe", "command_probe", "http_probe", "tcp_probe", "wait_for"]

_EVERY = 0.05
_SLOWEST = 1.0
_ANSWER = 10.0
_HEAD = 65536
_IN_BOX = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
s.settimeout(10)
if len(sys.argv) > 2:
    s.sendall(sys.argv[2].encode()); sys.stdout.write(s.recv(200).decode("latin-1"))
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """`dialled`: the sandbox opens ports of the box; otherwise the box's own Python does."""

    what: str
    port: int | None = None
    path: str | None = None
    command: str | None = None


def http_probe(url: str) -> Probe:
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Probe(url, parts.port or 80, path)


def tcp_probe(port: int) -> Probe:
    return Probe(f"tcp/{port}", port)


def command_probe(command: str) -> Probe:
    return Probe(command, command=command)


async def wait_for(
    box: Sandbox,
    probe: Probe,
    *,
    seconds: float,
    until: float,
    python: str | None,
    gone: Callable[[], InfrastructureError | None],
    excerpt: Callable[[], str] = str,
) -> None:
    """Until it holds, or the time is up. `gone` tells of a service that ended: it is not waited for any longer."""
    loop = asyncio.get_running_loop()
    wait, last = _EVERY, "nothing was tried"
    while True:
        if (failure := gone()) is not None:
            raise failure
        try:
            async with asyncio.timeout(max(0.1, min(_ANSWER, until - loop.time()))):
                last = await _try(box, probe, python)
        except TimeoutError:
            last = "no answer in time"
        except (BenchflowError, OSError) as error:
            last = str(error)
        if not last:
            return
        if loop.time() + wait > until:
            tail = excerpt()
            raise InfrastructureError(
                f"the world was not ready within {seconds:g} s: {probe.what}: {last}", details={"log": tail}
            )
        await asyncio.sleep(wait)
        wait = min(_SLOWEST, wait * 1.3)


async def _try(box: Sandbox, probe: Probe, python: str | None) -> str:
    """Nothing where it holds, else why not."""
    if probe.command is not None:
        done = await box.exec(("sh", "-c", probe.command), cwd="/", timeout=_ANSWER, max_output=4096)
        return "" if done.exit_code == 0 else f"exit code {done.exit_code}"
    assert probe.port is not None
    request = "" if probe.path is None else f"GET {probe.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    head = await (_in_box(box, probe.port, request, python) if python else _dialled(box, probe.port, request))
    if not request:
        return ""
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith("HTTP/"):
        return "it does not answer HTTP"
    return "" if words[1].startswith("2") else f"HTTP {words[1]}"


async def _dialled(box: Sandbox, port: int, request: str) -> str:
    stream = await box.dial(port)
    try:
        if not request:
            return ""
        await stream.write(request.encode())
        return (await stream.read(_HEAD)).decode("latin-1")
    finally:
        await stream.close()


async def _in_box(box: Sandbox, port: int, request: str, python: str) -> str:
    argv = (python, "-I", "-S", "-c", _IN_BOX, str(port), *([request] if request else ()))
    done = await box.exec(argv, cwd="/", timeout=_ANSWER, max_output=4096)
    if done.exit_code:
        raise InfrastructureError(f"nothing answers on port {port}")
    return done.stdout.decode("latin-1")
