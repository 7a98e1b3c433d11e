"""The way out of a box: what it refuses, and that it carries what it allows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from benchflow_boxkit import proxy

from benchflow_core.contracts import ImageRequest, NetworkPolicy, StartRequest


class Host:
    """A server of the host that answers with what it was asked, and the proxy in front of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.seen: list[bytes] = []

    async def __aenter__(self) -> Host:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
            writer.close()

        self.server = await asyncio.start_server(answer, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.server.close()

    def allow_loopback(self) -> None:
        """Where nothing but this machine answers, one address of it has to stand for the outside."""
        self.monkeypatch.setattr(proxy, "refused_address", lambda address, own: False)


async def test_requests_and_tunnels_pass(monkeypatch: pytest.MonkeyPatch, start: Any) -> None:
    async with Host(monkeypatch) as host:
        host.allow_loopback()
        box = await start()
        url = f"http://localhost:{host.port}/path?q=1"
        plain = await box.exec(["curl", "-sS", "--noproxy", "", "-H", "X-Test: yes", url])
        tunnel = await box.exec(["curl", "-sS", "--noproxy", "", "-p", url])
        assert (plain.stdout, tunnel.stdout) == (b"ok", b"ok"), plain.stderr + tunnel.stderr
    first, second = host.seen
    assert first.startswith(b"GET /path?q=1 HTTP/1.1\r\n") and b"X-Test: yes\r\n" in first
    assert b"roxy" not in first, "what concerns the proxy goes no further"
    assert second.startswith(b"GET /path?q=1 ")


async def test_this_machine_is_refused_through_the_proxy(monkeypatch: pytest.MonkeyPatch, start: Any) -> None:
    async with Host(monkeypatch) as host:
        box = await start()
        for name in ("localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433", "169.254.169.254"):
            done = await box.exec(["curl", "-sS", "--noproxy", "", f"http://{name}:{host.port}/"], timeout=30)
            assert b"ok" not in done.stdout and (b"403" in done.stdout or b"502" in done.stdout), (name, done)
        assert host.seen == []


async def test_another_proxy_of_this_machine_is_used(open_provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for the name itself, with a credential that no box sees; addresses of this machine stay refused."""
    seen: list[bytes] = []

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        if seen[-1].startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("https_proxy", f"http://me:secret@127.0.0.1:{port}")
    provider = open_provider()
    box = await provider.start(await provider.prepare(ImageRequest()), StartRequest("test"))
    assert (await box.exec(["curl", "-sS", "http://outside.invalid/x"])).stdout == b"ok"
    assert (await box.exec(["curl", "-sS", "-p", "http://outside.invalid:81/x"])).stdout == b"ok"
    assert b"403" in (await box.exec(["curl", "-sS", "--noproxy", "", "http://127.0.0.1/"])).stdout
    assert b"secret" not in (await box.exec(["env"])).stdout
    plain, tunnel = seen
    assert plain.startswith(b"GET http://outside.invalid/x HTTP/1.1\r\n") and b"Basic bWU6c2VjcmV0" in plain
    assert tunnel.startswith(b"CONNECT outside.invalid:81 HTTP/1.1\r\n") and b"Basic bWU6c2VjcmV0" in tunnel
    server.close()


async def test_a_changed_policy_ends_open_connections(monkeypatch: pytest.MonkeyPatch, start: Any) -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    monkeypatch.setattr(proxy, "refused_address", lambda address, own: False)
    box = await start()
    port = server.sockets[0].getsockname()[1]
    code = f"""
import os, socket
port = int(os.environ["http_proxy"].rpartition(":")[2])
s = socket.create_connection(("127.0.0.1", port))
s.sendall(b"CONNECT localhost:{port} HTTP/1.1\\r\\n\\r\\n")
print(s.recv(100).split()[1].decode(), flush=True)
print(s.recv(100))"""
    process = await box.spawn(["python3", "-c", code])
    assert await process.read() == b"200\n"
    await box.set_network(NetworkPolicy("none"))
    assert await asyncio.wait_for(process.read(), 10) == b"b''\n"
    assert "http_proxy" not in (await box.exec(["env"])).stdout.decode()
    server.close()


@pytest.mark.parametrize(
    "request_", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET ftp://x/ HTTP/1.1\r\n\r\n", b"CONNECT :x HTTP/1.1\r\n\r\n"]
)  # fmt: skip
async def test_bad_requests_are_answered(start: Any, request_: bytes) -> None:
    box = await start()
    port = int((await box.exec(["printenv", "http_proxy"])).stdout.decode().rpartition(":")[2])
    connection = await box.dial(port)
    await connection.write(request_)
    assert (await connection.read()).startswith(b"HTTP/1.1 400 ")
    await connection.close()


async def test_own_ports_are_not_shown_as_the_boxes(start: Any) -> None:
    from benchflow_core.contracts import HostEndpoint

    box = await start()
    await box.expose_to_box(HostEndpoint("127.0.0.1", 9), port=18000)
    assert await box.listening() == []
    again = await box.expose_to_box(HostEndpoint("127.0.0.1", 9))
    assert again == "http://127.0.0.1:18000", "the same server is shown once"
