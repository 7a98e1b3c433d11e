"""The way out of a box: an HTTP proxy on its loopback, served from outside, where the box cannot change its rules.

Programs that honour `http_proxy` reach what the policy allows; nothing else leaves the box at all. Addresses of this
machine, of private networks and of a cloud's metadata service are refused after the name was resolved, and the
connection goes to the address that was checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Collection
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from benchflow_boxkit.addresses import named_addresses, own_addresses
from benchflow_boxkit.upstream import Streams, Upstream
from benchflow_core.contracts.sandboxes import NetworkPolicy

__all__ = ["Duplex", "EgressProxy", "environment", "refused_address", "relay"]

_HEAD_LIMIT: Final = 65536
_CONNECT_SECONDS: Final = 30.0
_REFUSED_NETWORKS: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
        "::/128", "::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "100::/64",
    )
)  # fmt: skip
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_HOP_BY_HOP: Final = frozenset({"proxy-connection", "connection", "keep-alive", "proxy-authorization", "te", "upgrade"})


class Duplex(Protocol):
    """A connection of a box's, as we have it."""

    async def read(self, limit: int = 65536) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    def write_eof(self) -> None: ...

    async def close(self) -> None: ...


def environment(port: int) -> dict[str, str]:
    """What tells programs in a box about the proxy."""
    url, local = f"http://127.0.0.1:{port}", "localhost,127.0.0.1,::1"
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return dict.fromkeys(names, url) | {"no_proxy": local, "NO_PROXY": local, "NODE_USE_ENV_PROXY": "1"}


def refused_address(text: str, own: Collection[str] = ()) -> bool:
    """Is this an address that no box may reach through us?"""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return refused_address(str(inner), own)
    return str(address) in own or any(address in net for net in _REFUSED_NETWORKS if net.version == address.version)


class _Refusal(Exception):
    """A request is answered with this status."""


class EgressProxy:
    def __init__(self, policy: NetworkPolicy, upstream: Upstream | None = None) -> None:
        self.policy, self._upstream = policy, upstream

    def allows(self, host: str, port: int) -> bool:
        if self.policy.mode == "public":
            return True
        return self.policy.mode == "allowlist" and any(_matches(p, host, port) for p in self.policy.allowed_hosts)

    async def handle(self, inside: Duplex) -> None:
        try:
            method, target, version, headers, rest = await _read_head(inside)
            if method == "CONNECT":
                outside = await self._connect(*_split_host(target, 443))
                await inside.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                request = _Request.of(method, target, version, headers)
                outside = await self._connect(request.host, request.port, plain=True)
                outside[1].write(request.head(self._through(request.host)))
        except _Refusal as refusal:
            text = f"{refusal}\n"
            lines = f"HTTP/1.1 {refusal}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
            with contextlib.suppress(OSError):
                await inside.write(f"{lines}Connection: close\r\n\r\n{text}".encode())
            return
        outside[1].write(rest)
        await relay(inside, outside)

    def _through(self, host: str) -> Upstream | None:
        return self._upstream if self._upstream is not None and self._upstream.serves(host) else None

    async def _connect(self, host: str, port: int, *, plain: bool = False) -> Streams:
        if not self.allows(host, port):
            raise _Refusal(f"403 the network policy of this task does not allow {host}:{port}")
        through = self._through(host)
        addresses = await _resolve(host, port, required=through is None)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                if through is None:
                    return await _first_that_answers(addresses, port)
                found = await through.open() if plain else await through.tunnel(host, port)
        except (OSError, TimeoutError) as error:
            raise _Refusal(f"502 {host} does not answer on port {port}") from error
        if found is None:
            raise _Refusal(f"502 the proxy of this machine does not let us reach {host}")
        return found


async def _resolve(host: str, port: int, *, required: bool) -> list[str]:
    """Addresses that may be reached. Behind another proxy a name may mean nothing here, which is no harm."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        if not required:
            return []
        raise _Refusal(f"502 {host} does not resolve") from error
    own = await asyncio.to_thread(_own_addresses)
    addresses = dict.fromkeys(str(entry[4][0]) for entry in found)
    allowed = [address for address in addresses if not refused_address(address, own)]
    if not allowed:
        raise _Refusal(f"403 {host} is an address of this machine or of a private network")
    return allowed


def _own_addresses() -> set[str]:
    return own_addresses() | named_addresses()


async def _first_that_answers(addresses: list[str], port: int) -> Streams:
    failure: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
    raise failure or OSError("no address")


def _matches(pattern: str, host: str, port: int) -> bool:
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


async def _read_head(stream: Duplex) -> tuple[str, str, str, list[tuple[str, str]], bytes]:
    """The request, its headers, and what came along with them."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = await stream.read()
        data += more
        if not more or len(data) > _HEAD_LIMIT:
            raise _Refusal("400 not a request this proxy understands")
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise _Refusal("400 not a request this proxy understands")
    headers = [(n.strip(), v.strip()) for n, colon, v in (line.partition(":") for line in lines[1:]) if colon]
    return parts[0], parts[1], parts[2], headers, rest


def _split_host(target: str, default: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{target}")
        host, port = parts.hostname, parts.port or default
    except ValueError as error:
        raise _Refusal("400 no such host") from error
    if not host:
        raise _Refusal("400 no host")
    return host, port


class _Request(NamedTuple):
    """A plain request: one per connection, whatever was asked for."""

    method: str
    target: str
    version: str
    host: str
    port: int
    path: str
    headers: list[tuple[str, str]]

    @classmethod
    def of(cls, method: str, target: str, version: str, headers: list[tuple[str, str]]) -> _Request:
        parts = urlsplit(target)
        if parts.scheme != "http" or not parts.netloc:
            raise _Refusal("400 only http:// addresses and CONNECT go through this proxy")
        host, port = _split_host(parts.netloc.rpartition("@")[2], 80)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        kept = [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]
        if not any(name.lower() == "host" for name, _ in kept):
            kept.append(("Host", parts.netloc))
        return cls(method, target, version, host, port, path, kept)

    def head(self, upstream: Upstream | None) -> bytes:
        """As the server expects it, or as another proxy does."""
        target, more = (self.target, upstream.header) if upstream else (self.path, "")
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        return f"{self.method} {target} {self.version}\r\n{lines}{more}Connection: close\r\n\r\n".encode("latin-1")


async def relay(inside: Duplex, outside: Streams) -> None:
    """Both ways, until both have ended; an end in one direction is passed on and the other goes on."""
    reader, writer = outside

    async def out() -> None:
        with contextlib.suppress(OSError):
            while data := await inside.read():
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
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
