"""Network policies, ports, and servers of the host shown inside a box."""

from __future__ import annotations

import asyncio
import urllib.request

import pytest

from benchflow_core.contracts import NetworkPolicy, Sandbox
from benchflow_core.errors import InfrastructureError
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import Bench
from benchflow_testing_kit.sandbox.net import (
    answers,
    host_addresses,
    host_server,
    http_server,
    loopback_works,
    run_python,
    serve_in,
)
from benchflow_testing_kit.suite import needs, same

__all__ = ["NetworkTests"]

NONE = NetworkPolicy(mode="none")

ROUTES = """
import socket
reached = []
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:db8::1")):
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 53))
            reached.append(address)
    except OSError:
        pass
print(reached)
"""
"""A datagram socket connects without sending anything: it tells whether there is a route."""

GET = """
import sys, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=20) as answer:
        print(answer.status)
except OSError as error:
    print(error)
"""

EXCHANGES = """
import sys, threading, urllib.request
base, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
good = []
def run(n):
    body = bytes([n]) * size
    with urllib.request.urlopen(urllib.request.Request(f"{base}/path/{n}", data=body), timeout=60) as answer:
        if answer.read() == b"/path/%d\\n" % n + body:
            good.append(n)
threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(good))
"""

HALF_CLOSE = """
import socket, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
connection = socket.create_connection((url.hostname, url.port), timeout=30)
connection.sendall(b"POST /half HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" + b"z" * 100000)
connection.shutdown(socket.SHUT_WR)
answer = b""
while data := connection.recv(65536):
    answer += data
print(answer.startswith(b"HTTP/1.1 200"), answer.endswith(b"\\r\\n\\r\\n/half\\n" + b"z" * 100000))
"""


class NetworkTests(SandboxSuite):
    """What is closed is closed, loopback always works, and the way to our own servers is always open."""

    @needs("network-none")
    async def test_cut_off_box_has_loopback_and_nothing_else(self, bench: Bench) -> None:
        python, box = bench.python(), await bench.start(network=NONE)
        assert await loopback_works(box, python)
        assert await run_python(box, python, ROUTES) == "[]\n", "there is a route out of the box"
        async with host_server("0.0.0.0") as port:
            for address in ("127.0.0.1", *host_addresses()):
                assert not await answers(box, python, address, port), f"the box reaches the host at {address}"

    @needs("network-public")
    async def test_public_box_reaches_the_outside(self, bench: Bench, public_url: str | None) -> None:
        box = await bench.start(network=NetworkPolicy(mode="public"))
        assert await _gets(box, bench.python(), _reachable(public_url))

    @needs("network-allowlist")
    async def test_allowlist_lets_only_named_hosts_through(self, bench: Bench, public_url: str | None) -> None:
        python = bench.python()
        closed = await bench.start(network=NetworkPolicy(mode="allowlist", allowed_hosts=("allowed.invalid",)))
        assert await loopback_works(closed, python)
        async with host_server("0.0.0.0") as port:
            for address in ("127.0.0.1", *host_addresses()):
                assert not await answers(closed, python, address, port)
        url = _reachable(public_url)
        assert not await _gets(closed, python, url)
        host = url.split("/")[2].partition(":")[0]
        opened = await bench.start(network=NetworkPolicy(mode="allowlist", allowed_hosts=(host,)))
        assert await _gets(opened, python, url)

    @needs("network-dynamic", "network-none")
    async def test_policy_of_a_running_box_changes(self, bench: Bench, public_url: str | None) -> None:
        python, box = bench.python(), await bench.start(network=NetworkPolicy(mode="public"))
        url = _reachable(public_url)
        assert await _gets(box, python, url)
        await box.set_network(NONE)
        assert not await _gets(box, python, url)
        assert await loopback_works(box, python)
        await box.set_network(NetworkPolicy(mode="public"))
        assert await _gets(box, python, url)

    @needs("ports")
    async def test_listening_ports_are_found(self, bench: Bench) -> None:
        python, box = bench.python(), await bench.start()
        assert await box.listening() == []
        port, _ = await serve_in(box, python)
        assert await box.listening() == [port]

    @needs("ports")
    async def test_dial_reaches_a_server_in_the_box(self, bench: Bench) -> None:
        box = await bench.start()
        port, _ = await serve_in(box, bench.python())

        async def talk(n: int) -> None:
            stream = await box.dial(port)
            data = b"kit-banner\n" + bytes([n]) * 300_000
            sending = asyncio.create_task(stream.write(data[11:]))
            received = b""
            while len(received) < len(data) and (more := await stream.read()):
                received += more
            await sending
            same(received, data)
            await stream.close()

        await asyncio.gather(*(talk(n) for n in range(10)))

    @needs("ports")
    async def test_dial_to_a_closed_port_is_an_error(self, bench: Bench) -> None:
        box = await bench.start()
        with pytest.raises((InfrastructureError, ConnectionError)):
            await box.dial(1)

    async def test_exposed_host_server_answers(self, bench: Bench) -> None:
        python, box = bench.python(), await _cut_off(bench)
        async with http_server() as port:
            url = await bench.expose(box, port)
            assert url.startswith("http://")
            assert await run_python(box, python, EXCHANGES, url, "1", "0") == "1\n"
            assert await run_python(box, python, EXCHANGES, url, "1", "5000000") == "1\n"

    async def test_exposed_host_server_takes_many_connections(self, bench: Bench) -> None:
        box = await _cut_off(bench)
        async with http_server() as port:
            url = await bench.expose(box, port)
            assert await run_python(box, bench.python(), EXCHANGES, url, "20", "200000") == "20\n"

    async def test_exposed_host_server_knows_half_closed_connections(self, bench: Bench) -> None:
        box = await _cut_off(bench)
        async with http_server() as port:
            url = await bench.expose(box, port)
            assert await run_python(box, bench.python(), HALF_CLOSE, url) == "True True\n"

    async def test_two_servers_are_exposed_at_the_ports_asked_for(self, bench: Bench) -> None:
        python, box = bench.python(), await _cut_off(bench)
        async with http_server() as one, http_server() as two:
            first = await bench.expose(box, one, 18_431)
            second = await bench.expose(box, two)
            assert first.rstrip("/").endswith(":18431") and first != second
            for url in (first, second):
                assert await run_python(box, python, EXCHANGES, url, "3", "10") == "3\n"


async def _cut_off(bench: Bench) -> Sandbox:
    """The gateway must be reached even where nothing else is."""
    return await bench.start(network=NONE) if "network-none" in bench.capabilities else await bench.start()


async def _gets(box: Sandbox, python: str, url: str) -> bool:
    return await run_python(box, python, GET, url) == "200\n"


def _reachable(url: str | None) -> str:
    if url is None:
        pytest.skip("no fixture `public_url`: nothing outside this machine to reach")
    try:
        with urllib.request.urlopen(url, timeout=20):
            return url
    except OSError as error:
        pytest.skip(f"{url} cannot be reached from the host itself: {error}")
