"""The core's own way into a box: many connections over one process's stdio."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from benchflow_testing_kit.host import eventually, open_descriptors
from benchflow_wires import Tunnel
from benchflow_wires.mux import FRAME, HEAD, HELLO, OPEN

from benchflow_core.contracts import HostEndpoint
from benchflow_core.errors import CapabilityMissing, InfrastructureError

PYTHON = {"python": sys.executable}


@pytest_asyncio.fixture
async def echo() -> AsyncIterator[HostEndpoint]:
    """Sends back what it gets, and ends when the client has."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield HostEndpoint("127.0.0.1", server.sockets[0].getsockname()[1])
    server.close()


async def round_trip(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send() -> None:
        writer.write(data)
        await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(send())
    got = await reader.read()
    await sending
    writer.close()
    return got


async def test_bytes_cross_unchanged(host_box: Any, echo: HostEndpoint) -> None:
    tunnel = await Tunnel.open(host_box, echo, PYTHON)
    data = os.urandom(3_000_000)
    assert await round_trip(tunnel.port, data) == data
    assert tunnel.url == f"http://127.0.0.1:{tunnel.port}" and tunnel.alive
    await tunnel.close()
    assert not tunnel.alive


async def test_many_connections_at_once(host_box: Any, echo: HostEndpoint) -> None:
    tunnel = await Tunnel.open(host_box, echo, PYTHON)
    sent = [hashlib.sha256(str(n).encode()).digest() * 2000 for n in range(100)]
    assert await asyncio.gather(*(round_trip(tunnel.port, data) for data in sent)) == sent
    await tunnel.close()


async def test_one_slow_reader_does_not_hold_up_the_others(host_box: Any, echo: HostEndpoint) -> None:
    tunnel = await Tunnel.open(host_box, echo, PYTHON)
    _, stuck = await asyncio.open_connection("127.0.0.1", tunnel.port, limit=1024)
    writing = asyncio.create_task(_flood(stuck))
    await asyncio.sleep(0.3)
    async with asyncio.timeout(10):
        assert await round_trip(tunnel.port, b"x" * 100_000) == b"x" * 100_000
    assert not writing.done(), "nobody reads the answer: the sender is held back instead of memory growing"
    writing.cancel()
    stuck.close()
    await tunnel.close()


async def _flood(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"y" * 65536)
        await writer.drain()


async def test_a_server_that_is_gone_closes_the_connection(host_box: Any) -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    tunnel = await Tunnel.open(host_box, HostEndpoint("127.0.0.1", port), PYTHON)
    async with asyncio.timeout(5):
        assert await round_trip(tunnel.port, b"hello") == b""
    await tunnel.close()


async def test_nothing_is_left_behind(host_box: Any, echo: HostEndpoint) -> None:
    before = open_descriptors()
    tunnel = await Tunnel.open(host_box, echo, PYTHON)
    reader, writer = await asyncio.open_connection("127.0.0.1", tunnel.port)
    writer.write(b"half")
    await reader.readexactly(4)
    await tunnel.close()
    await tunnel.close()
    assert host_box.processes[0]._child.returncode is not None
    writer.close()
    del host_box.processes[:]
    assert await eventually(lambda: open_descriptors() <= before)


async def test_it_ends_with_the_host(host_box: Any, echo: HostEndpoint) -> None:
    tunnel = await Tunnel.open(host_box, echo, PYTHON)
    await host_box.processes[0].close_stdin()
    async with asyncio.timeout(5):
        await host_box.processes[0].wait()
    assert await eventually(lambda: not tunnel.alive)
    await tunnel.close()


async def test_a_box_without_python_is_refused_clearly(host_box: Any, echo: HostEndpoint) -> None:
    with pytest.raises(CapabilityMissing, match="no Python"):
        await Tunnel.open(host_box, echo, {})
    with pytest.raises(InfrastructureError, match="did not start"):
        await Tunnel.open(host_box, echo, {"python": shutil.which("false") or "/bin/false"})
    assert all(p._child.returncode is not None for p in host_box.processes)


HOSTILE = {
    "nonsense": b"\xff" * 4096,
    "too-long": HEAD.pack(0, HELLO, 4) + b"\0\0\0\7" + HEAD.pack(1, OPEN, FRAME + 1),
    "twice": HEAD.pack(0, HELLO, 4) + b"\0\0\0\7" + HEAD.pack(1, OPEN, 0) * 2,
    "too-much": HEAD.pack(0, HELLO, 4)
    + b"\0\0\0\7"
    + HEAD.pack(1, OPEN, 0)
    + (HEAD.pack(1, 1, FRAME) + b"x" * FRAME) * 999,
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_what_a_hostile_box_says_is_not_believed(host_box: Any, tmp_path: Any, name: str) -> None:
    """The other end is in the agent's power."""
    said = tmp_path / "said"
    said.write_bytes(HOSTILE[name])
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat {said}\nsleep 60\n")
    program.chmod(0o755)

    # A server that accepts and never reads: a reader that is held and not read fills up and pauses. To pause it here by
    # hand would be too early for Python 3.11.2, which begins to read afterwards and then takes itself for paused.
    held: list[Any] = []
    server = await asyncio.start_server(lambda *connection: held.append(connection), "127.0.0.1", 0)
    endpoint = HostEndpoint("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        tunnel = await Tunnel.open(host_box, endpoint, {"python": str(program)})
    except InfrastructureError:
        assert name == "nonsense"
    else:
        assert await eventually(lambda: not tunnel.alive)
        await tunnel.close()
        assert name != "too-much" or held, "nothing was sent too much of"
    server.close()


@pytest.fixture(params=["3.8", "3.9", "3.12", "3.13"])
def other_python(request: pytest.FixtureRequest, interpreter: Callable[[str], str]) -> str:
    return interpreter(request.param)


async def test_the_program_runs_on_the_pythons_of_images(host_box: Any, echo: HostEndpoint, other_python: str) -> None:
    tunnel = await Tunnel.open(host_box, echo, {"python": other_python})
    assert await round_trip(tunnel.port, b"z" * 500_000) == b"z" * 500_000
    await tunnel.close()
