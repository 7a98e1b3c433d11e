"""Addresses that a box must not reach: this machine's own, a cloud's metadata, and the other boxes'."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable
from typing import Any, Final

from benchflow_boxkit.addresses import own_addresses

from benchflow_sandbox_docker.engine.api import EngineClient

__all__ = ["SERVICES", "bridge_prefixes", "forbidden", "watch"]

SERVICES: Final = "198.18.0.0/15"
"""Where the networks of compose tasks are made, each with an address of the engine's host in it."""
_IPV4_ADDRESSES, _IPV6_ADDRESSES = 0x10, 0x100
_ALWAYS: Final = (SERVICES, "169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128")


def watch(changed: Callable[[], None]) -> Callable[[], None]:
    """Call `changed` whenever this host gains or loses an IP address; return a function that stops watching."""
    if not hasattr(socket, "AF_NETLINK"):
        return lambda: None
    loop = asyncio.get_running_loop()
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    netlink.setblocking(False)
    netlink.bind((0, _IPV4_ADDRESSES | _IPV6_ADDRESSES))

    def read() -> None:
        with contextlib.suppress(OSError):  # nothing more, or more than there was room for: both are a change
            while netlink.recv(1 << 16):
                pass
        changed()

    def end() -> None:
        if netlink.fileno() >= 0:
            loop.remove_reader(netlink)
            netlink.close()

    loop.add_reader(netlink, read)
    return end


async def bridge_prefixes(engine: EngineClient, network: str) -> list[str]:
    """Where the other containers of a network are, its gateway (which is the engine's host) included."""
    found: dict[str, Any] = await engine.network(network) or {}
    rows = (found.get("IPAM") or {}).get("Config") or ()
    return [str(row["Subnet"]) for row in rows if row.get("Subnet")]


def forbidden(bridge: list[str]) -> list[str]:
    """What is below one of the others is left out: every running box has an address of its own on the host."""
    wide = [ipaddress.ip_network(prefix, strict=False) for prefix in (*_ALWAYS, *bridge)]
    parsed = (ipaddress.ip_address(address) for address in sorted(own_addresses()))
    rest = [a for a in parsed if not a.is_loopback and not any(a in network for network in wide)]
    return list(dict.fromkeys([*_ALWAYS, *bridge, *(f"{a}/{a.max_prefixlen}" for a in rest)]))
