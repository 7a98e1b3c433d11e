"""Ports of the box's own network. The sockets are made here, inside, and handed out."""

from __future__ import annotations

import contextlib
import errno
import socket

from benchflow_sandbox_local.helper import wire
from benchflow_sandbox_local.helper.service import Answer, Service

_LISTENING = "0A"
_DIAL_SECONDS = 5.0


class Ports(Service):
    def do_listen(self, message: wire.Message, fds: list[int]) -> Answer:
        sock = listen(message["port"])
        return {"port": sock.getsockname()[1]}, [sock.detach()]

    def do_dial(self, message: wire.Message, fds: list[int]) -> Answer:
        failure: OSError | None = None
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            try:
                return {}, [_connect(family, host, message["port"])]
            except OSError as error:
                failure = failure or error
        raise failure or OSError(errno.ECONNREFUSED, "connection refused")

    def do_listening(self, message: wire.Message, fds: list[int]) -> Answer:
        ports = set()
        for name in ("tcp", "tcp6"):
            with contextlib.suppress(OSError), open(f"/proc/net/{name}") as table:
                next(table)
                for line in table:
                    fields = line.split()
                    if fields[3] == _LISTENING:
                        ports.add(int(fields[1].rsplit(":", 1)[1], 16))
        return {"ports": sorted(ports)}, []


def listen(port: int) -> socket.socket:
    """On the box's loopback; port 0: any."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen(256)
    except OSError:
        sock.close()
        raise
    return sock


def _connect(family: int, host: str, port: int) -> int:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(_DIAL_SECONDS)
        sock.connect((host, port))
    except OSError:
        sock.close()
        raise
    return sock.detach()
