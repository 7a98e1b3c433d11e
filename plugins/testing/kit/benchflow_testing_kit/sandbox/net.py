"""Small servers and clients for the network tests: on the host as coroutines, in the box as Python programs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import urllib.request
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Final

from benchflow_core.contracts import Sandbox

__all__ = [
    "answers", "host_addresses", "host_server", "http_server", "loopback_works", "reachable_outside", "run_python",
    "serve_in",
]  # fmt: skip

BANNER: Final = b"kit-banner\n"

BOX_SERVER: Final = """
import fcntl, json, socket, struct, threading
addresses = set()
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _, name in socket.if_nameindex():
    try:
        addresses.add(socket.inet_ntoa(fcntl.ioctl(probe, 0x8915, struct.pack("256s", name.encode()))[20:24]))
    except OSError:
        pass
server = socket.create_server(("0.0.0.0", 0), backlog=64)
print(json.dumps([server.getsockname()[1], sorted(addresses)]), flush=True)

def serve(connection):
    with connection:
        connection.sendall(b"kit-banner\\n")
        while data := connection.recv(65536):
            connection.sendall(data)

while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
"""Greets and then echoes, on all addresses of the box."""

CLIENT: Final = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2) as connection:
        connection.settimeout(2)
        print(connection.recv(64) == b"kit-banner\\n")
except OSError as error:
    print(error)
"""

LOOPBACK: Final = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname(), timeout=5)
server.accept()[0].sendall(b"x")
print(client.recv(1) == b"x")
"""


async def run_python(box: Sandbox, python: str, code: str, *args: str, timeout: float = 60.0) -> str:
    """Runs a program in the box; it must succeed, and what it printed comes back."""
    done = await box.exec([python, "-c", code, *args], timeout=timeout)
    assert done.exit_code == 0, f"exit code {done.exit_code}: {done.stderr[-2000:].decode(errors='replace')}"
    return done.stdout.decode()


async def serve_in(box: Sandbox, python: str) -> tuple[int, list[str]]:
    """Starts the greeting server in the box: its port and the box's addresses. It ends with the box."""
    process = await box.spawn([python, "-c", BOX_SERVER])
    async with asyncio.timeout(30):
        line = b""
        while not line.endswith(b"\n"):
            more = await process.read()
            assert more, (await process.read_stderr()).decode(errors="replace")
            line += more
    port, addresses = json.loads(line)
    return port, addresses


async def answers(box: Sandbox, python: str, host: str, port: int) -> bool:
    """Whether a greeting server can be reached from the box."""
    return await run_python(box, python, CLIENT, host, str(port)) == "True\n"


async def loopback_works(box: Sandbox, python: str) -> bool:
    return await run_python(box, python, LOOPBACK) == "True\n"


def host_addresses() -> list[str]:
    """This host's own addresses, as far as it knows them without asking anybody."""
    found = set()
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        found.add(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        found.update(str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET))
    return sorted(found - {"127.0.0.1", "127.0.1.1"})


@contextlib.asynccontextmanager
async def host_server(bind: str) -> AsyncIterator[int]:
    """The greeting server on the host."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(BANNER)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, bind, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@contextlib.asynccontextmanager
async def http_server() -> AsyncIterator[int]:
    """An HTTP/1.1 server on the host's loopback that sends a request's path and body back, without keep-alive."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = next(
                (int(x.split(":")[1]) for x in head.split("\r\n") if x.lower().startswith("content-length:")), None
            )
            # Without a length the body ends when the client closes its half of the connection.
            body = (
                await reader.read()
                if length is None and head.startswith("POST")
                else await reader.readexactly(length or 0)
            )
            answer = head.split(" ", 2)[1].encode() + b"\n" + body
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@cache
def reachable_outside() -> str | None:
    """A server outside this machine that answers: one of those it installs its own packages from."""
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    text = "\n".join(path.read_text() for path in lists if path.is_file())
    sources = re.findall(r"^[^#\n]*?(http://[^\s\]]+)", text, re.MULTILINE)
    for url in (f"{source.rstrip('/')}/{name}" for source in sources for name in ("README", "dists/")):
        try:
            with urllib.request.urlopen(url, timeout=10):
                return url
        except OSError:
            continue
    return None
