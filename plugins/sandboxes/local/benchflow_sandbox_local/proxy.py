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
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from benchflow_core.contracts.sandboxes import NetworkPolicy
from benchflow_sandbox_local.forward import relay
from benchflow_sandbox_local.upstream import Streams, Upstream

__all__ = ["EgressProxy", "environment", "refused_address"]

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


def environment(port: int) -> dict[str, str]:
    """What tells programs in a box about the proxy."""
    url = f"http://127.0.0.1:{port}"
    env = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"), url)
    return env | {
        "no_proxy": "localhost,127.0.0.1,::1",
        "NO_PROXY": "localhost,127.0.0.1,::1",
        "NODE_USE_ENV_PROXY": "1",
    }


def refused_address(text: str, own: Iterable[str] = ()) -> bool:
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
    """The request is answered with this status line."""


class EgressProxy:
    def __init__(
        self, policy: NetworkPolicy, own_addresses: frozenset[str] | None = None, upstream: Upstream | None = None
    ) -> None:
        self.policy, self._upstream = policy, upstream
        self._own = _own_addresses() if own_addresses is None else own_addresses

    def allows(self, host: str, port: int) -> bool:
        if self.policy.mode == "public":
            return True
        return self.policy.mode == "allowlist" and any(_matches(p, host, port) for p in self.policy.allowed_hosts)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            method, target, version, headers = await _read_head(reader)
            if method == "CONNECT":
                outside = await self._connect(*_split_host(target, 443))
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                request = _Request.of(method, target, version, headers)
                outside = await self._connect(request.host, request.port, plain=True)
                outside[1].write(request.head(self._upstream if self._through_upstream(request.host) else None))
        except _Refusal as refusal:
            await _answer(writer, str(refusal))
            return
        await relay((reader, writer), outside)

    def _through_upstream(self, host: str) -> bool:
        return self._upstream is not None and self._upstream.serves(host)

    async def _connect(self, host: str, port: int, *, plain: bool = False) -> Streams:
        if not self.allows(host, port):
            raise _Refusal(f"403 {host} is not reachable under the network policy {self.policy.mode!r}")
        through = self._upstream if self._through_upstream(host) else None
        addresses = await self._resolve(host, port, required=through is None)
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

    async def _resolve(self, host: str, port: int, *, required: bool) -> list[str]:
        """Addresses that may be reached. Behind another proxy a name may mean nothing here, which is no harm."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            if not required:
                return []
            raise _Refusal(f"502 {host} does not resolve") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        allowed = [address for address in addresses if not refused_address(address, self._own)]
        if not allowed:
            raise _Refusal(f"403 {host} is an address of this machine or of a private network")
        return allowed


async def _first_that_answers(addresses: list[str], port: int) -> Streams:
    failure: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
    raise failure or OSError("no address")


async def _answer(writer: asyncio.StreamWriter, status: str) -> None:
    text = f"{status}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    with contextlib.suppress(OSError):
        writer.write(head.encode() + text)
        await writer.drain()


@cache
def _own_addresses() -> frozenset[str]:
    """Addresses of this machine's own interfaces, as far as they can be found without asking anybody."""
    found = _addresses_from_proc()
    with contextlib.suppress(OSError):
        for entry in socket.getaddrinfo(socket.gethostname(), None):
            found.add(str(entry[4][0]))
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # a datagram socket sends nothing on connect
            found.add(str(probe.getsockname()[0]))
    return frozenset(found)


def _addresses_from_proc() -> set[str]:
    found: set[str] = set()
    with contextlib.suppress(OSError):
        address = ""
        for line in Path("/proc/net/fib_trie").read_text().splitlines():
            if "host LOCAL" in line:
                found.add(address)
            address = line.rpartition("-- ")[2].strip() if "-- " in line else address
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            found.add(str(ipaddress.IPv6Address(int(line.split()[0], 16))))
    return found


def _matches(pattern: str, host: str, port: int) -> bool:
    """`example.com`, `*.example.com` or `.example.com` for names below it, each with an optional `:port`."""
    name, _, wanted = (
        pattern.strip().lower().rpartition(":") if _has_port(pattern) else (pattern.strip().lower(), "", "")
    )
    if wanted and int(wanted) != port:
        return False
    host = host.lower().rstrip(".")
    if name.startswith(("*.", ".")):
        return host.endswith(name.lstrip("*"))
    return host == name


def _has_port(pattern: str) -> bool:
    head, colon, tail = pattern.strip().rpartition(":")
    return bool(colon) and tail.isdigit() and (":" not in head or head.endswith("]"))


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, str, list[tuple[str, str]]]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.LimitOverrunError, asyncio.IncompleteReadError) as error:
        raise _Refusal("400 not a request this proxy understands") from error
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(head) > _HEAD_LIMIT or len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise _Refusal("400 not a request this proxy understands")
    headers = [(n.strip(), v.strip()) for n, colon, v in (line.partition(":") for line in lines[1:] if line) if colon]
    return parts[0], parts[1], parts[2], headers


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
