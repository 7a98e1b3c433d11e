"""The only way out of a box with an allow-list: an HTTP proxy on its loopback, served from outside.

The box has no network at all. What its programs send to the proxy comes over the box's own connection; this side
decides, resolves the name, refuses addresses of this machine, of private networks and of a cloud's metadata, and dials
the very address that was checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import urlsplit

from benchflow_core.contracts.sandboxes import NetworkPolicy
from benchflow_sandbox_docker.addresses import own_addresses

__all__ = ["Duplex", "EgressProxy", "environment", "matches", "refused_address", "relay"]

_HEAD: Final = 65536
_SECONDS: Final = 30.0
_REFUSED: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3", "::/128", "::1/128", "64:ff9b::/96", "100::/64", "2002::/16",
        "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    )
)  # fmt: skip
_DROPPED: Final = frozenset({"proxy-connection", "connection", "keep-alive", "proxy-authorization", "te", "upgrade"})


class Duplex(Protocol):
    async def read(self, limit: int = 65536) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    def write_eof(self) -> None: ...

    async def close(self) -> None: ...


def environment(port: int) -> dict[str, str]:
    """What tells programs in a box about the proxy."""
    url, local = f"http://127.0.0.1:{port}", "localhost,127.0.0.1,::1"
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return dict.fromkeys(names, url) | {"no_proxy": local, "NO_PROXY": local, "NODE_USE_ENV_PROXY": "1"}


def refused_address(text: str, own: frozenset[str] = frozenset()) -> bool:
    """Is this an address that no box may reach through us?"""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(address) in own or any(address in net for net in _REFUSED if net.version == address.version)


def matches(pattern: str, host: str, port: int) -> bool:
    """`example.com`, `*.example.com` or `.example.com` for names below it, each with an optional `:port`."""
    pattern, name = pattern.strip().lower(), host.lower().rstrip(".")
    head, colon, tail = pattern.rpartition(":")
    if colon and tail.isdigit() and (":" not in head or head.endswith("]")):
        if int(tail) != port:
            return False
        pattern = head
    if pattern.startswith(("*.", ".")):
        return name.endswith(pattern.lstrip("*"))
    return name == pattern


class _Refusal(Exception):
    """The request is answered with this status line."""


class EgressProxy:
    def __init__(self, policy: NetworkPolicy, upstream: Mapping[str, str] | None = None) -> None:
        self.policy = policy
        self._upstream = _upstream(upstream or {})

    async def handle(self, inside: Duplex) -> None:
        try:
            method, target, version, headers, rest = await _head(inside)
            if method == "CONNECT":
                outside = await self._connect(*_host(target, 443))
                await inside.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                host, port, head = _plain(method, target, version, headers)
                outside = await self._connect(host, port)
                outside[1].write(head)
        except _Refusal as refusal:
            text = f"{refusal}\n"
            lines = f"HTTP/1.1 {refusal}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
            await inside.write(f"{lines}Connection: close\r\n\r\n{text}".encode())
            return
        outside[1].write(rest)
        await relay(inside, outside)

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        allowed = self.policy.mode == "allowlist" and any(matches(p, host, port) for p in self.policy.allowed_hosts)
        if not allowed:
            raise _Refusal(f"403 {host} is not reachable under the network policy {self.policy.mode!r}")
        try:
            async with asyncio.timeout(_SECONDS):
                if self._upstream is not None and not host.endswith(self._upstream[2]):
                    return await _through(self._upstream, host, port)
                return await _dial(await _resolve(host, port), port)
        except (OSError, TimeoutError) as error:
            raise _Refusal(f"502 {host} does not answer on port {port}") from error


async def _through(upstream: _Upstream, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """By the proxy this machine itself has to use."""
    reader, writer = await asyncio.open_connection(upstream[0], upstream[1])
    writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    head = b""
    with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        head = await reader.readuntil(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        writer.close()
        raise _Refusal(f"502 the proxy of this machine does not let us reach {host}")
    return reader, writer


_Upstream = tuple[str, int, tuple[str, ...]]


def _upstream(env: Mapping[str, str]) -> _Upstream | None:
    low = {name.lower(): value for name, value in env.items() if value}
    url = urlsplit(low.get("https_proxy") or low.get("http_proxy") or "")
    if url.scheme != "http" or not url.hostname:
        return None
    direct = tuple(part.strip().lstrip("*") for part in low.get("no_proxy", "").split(",") if part.strip())
    return url.hostname, url.port or 80, direct


async def _resolve(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _Refusal(f"502 {host} does not resolve") from error
    own = frozenset(own_addresses())
    allowed = [a for a in dict.fromkeys(str(entry[4][0]) for entry in found) if not refused_address(a, own)]
    if not allowed:
        raise _Refusal(f"403 {host} is an address of this machine or of a private network")
    return allowed


async def _dial(addresses: list[str], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    failure: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
    raise failure or OSError("no address")


async def _head(stream: Duplex) -> tuple[str, str, str, list[tuple[str, str]], bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        more = await stream.read()
        data += more
        if not more or len(data) > _HEAD:
            raise _Refusal("400 not a request this proxy understands")
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise _Refusal("400 not a request this proxy understands")
    headers = [(n.strip(), v.strip()) for n, colon, v in (line.partition(":") for line in lines[1:]) if colon]
    return parts[0], parts[1], parts[2], headers, rest


def _host(target: str, default: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{target}")
        host, port = parts.hostname, parts.port or default
    except ValueError as error:
        raise _Refusal("400 no such host") from error
    if not host:
        raise _Refusal("400 no host")
    return host, port


def _plain(method: str, target: str, version: str, headers: list[tuple[str, str]]) -> tuple[str, int, bytes]:
    """A request for `http://…`: one per connection, whatever was asked for."""
    parts = urlsplit(target)
    if parts.scheme != "http" or not parts.netloc:
        raise _Refusal("400 only http:// addresses and CONNECT go through this proxy")
    host, port = _host(parts.netloc.rpartition("@")[2], 80)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [(name, value) for name, value in headers if name.lower() not in _DROPPED]
    if not any(name.lower() == "host" for name, _ in kept):
        kept.append(("Host", parts.netloc))
    lines = "".join(f"{name}: {value}\r\n" for name, value in kept)
    return host, port, f"{method} {path} {version}\r\n{lines}Connection: close\r\n\r\n".encode("latin-1")


async def relay(inside: Duplex, outside: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Both ways, until both have ended; an end in one direction is passed on and the other goes on."""
    reader, writer = outside

    async def out() -> None:
        with contextlib.suppress(OSError):
            while data := await inside.read():
                writer.write(data)
                await writer.drain()
            writer.write_eof()

    async def back() -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await inside.write(data)
        inside.write_eof()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(out())
            group.create_task(back())
    finally:
        writer.close()
