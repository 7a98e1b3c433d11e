"""This machine's own addresses, which no box may reach through us."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from functools import cache
from pathlib import Path

__all__ = ["named_addresses", "own_addresses"]


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


@cache
def named_addresses() -> frozenset[str]:
    """What this machine's name means. Asks a name server, perhaps: once, and not in an event loop."""
    try:
        return frozenset(str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None))
    except OSError:
        return frozenset()
