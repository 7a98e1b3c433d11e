"""Addresses that a box must not reach: this machine's own, a cloud's metadata, and the other boxes'."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from pathlib import Path
from typing import Any, Final

from benchflow_sandbox_docker.engine.api import Engine

__all__ = ["SERVICES", "bridge_prefixes", "forbidden", "own_addresses"]

SERVICES: Final = "198.18.0.0/15"
"""Where the networks of compose tasks are made, each with an address of the engine's host in it."""
_ALWAYS: Final = (SERVICES, "169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128")


def own_addresses() -> set[str]:
    """Of this machine's interfaces, read anew each time: engines make bridges while we run."""
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
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # a datagram socket sends nothing on connect
            found.add(str(probe.getsockname()[0]))
    return found


async def bridge_prefixes(engine: Engine, network: str) -> list[str]:
    """Where the other containers of a network are, its gateway (which is the engine's host) included."""
    found: dict[str, Any] = await engine.network(network) or {}
    rows = (found.get("IPAM") or {}).get("Config") or ()
    return [str(row["Subnet"]) for row in rows if row.get("Subnet")]


def forbidden(bridge: list[str]) -> list[str]:
    addresses = (a for a in own_addresses() if not ipaddress.ip_address(a).is_loopback)
    return list(dict.fromkeys([*_ALWAYS, *bridge, *(f"{a}/{128 if ':' in a else 32}" for a in sorted(addresses))]))
