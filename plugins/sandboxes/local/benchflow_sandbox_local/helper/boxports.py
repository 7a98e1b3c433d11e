"""Ports of the box's own network. The sockets are made here, inside, and handed out."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct

from benchflow_sandbox_local.helper import wire
from benchflow_sandbox_local.helper.service import Answer, Service

_LISTENING, _LISTEN_STATE = "0A", 10
_NETLINK_SOCK_DIAG, _BY_FAMILY, _DUMP, _ERROR, _DONE = 4, 20, 0x301, 2, 3
_REQUEST = 16 + 56  # a message's header, and struct inet_diag_req_v2
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
        ports: set[int] = set()
        for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
            try:
                ports |= _asked(family)
            except OSError:  # a kernel without this kind of question
                ports |= _read(name)
        return {"ports": sorted(ports)}, []


def _asked(family: int) -> set[int]:
    """The listening ports, from the kernel's socket diagnosis.

    `/proc/net/tcp` says the same, but for that the kernel walks the connections of all namespaces, host included.
    """
    ports: set[int] = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        header = struct.pack("=IHHII", _REQUEST, _BY_FAMILY, _DUMP, 1, 0)
        netlink.send(header + struct.pack("=BBxxI48x", family, socket.IPPROTO_TCP, 1 << _LISTEN_STATE))
        while True:
            data = netlink.recv(1 << 17)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind == _DONE:
                    return ports
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, 16)[0], "sock_diag")
                ports.add(struct.unpack_from(">H", data, 20)[0])
                data = data[(length + 3) & ~3 :]


def _read(name: str) -> set[int]:
    ports: set[int] = set()
    with contextlib.suppress(OSError), open(f"/proc/net/{name}") as table:
        next(table)
        for line in table:
            fields = line.split()
            if fields[3] == _LISTENING:
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


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
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # pieces go as they come
    except OSError:
        sock.close()
        raise
    return sock.detach()
