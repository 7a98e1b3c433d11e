"""From the vendor's stream to the supervisor: started anew for every connection, starts the supervisor if need be."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import time
import tty

from benchflow_boxkit.inside import link, supervisor

_SECONDS = 20.0


def main() -> None:
    with contextlib.suppress(Exception):
        if os.isatty(0):
            tty.setraw(0)
        elif os.isatty(1):
            tty.setraw(1)
    try:
        connection = _connect()
    except OSError as error:
        print(f"benchflow-box: no supervisor: {error}", file=sys.stderr, flush=True)
        sys.exit(69)
    _write(1, link.MARK)
    with contextlib.suppress(OSError):
        _carry(connection)
    os._exit(0)


def _connect() -> socket.socket:
    """To the supervisor of this box; the first one that comes starts it."""
    try:
        return _dial()
    except OSError:
        supervisor.start()
    end = time.monotonic() + _SECONDS
    while True:
        try:
            return _dial()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _dial() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(supervisor.SOCKET)
    except OSError:
        connection.close()
        raise
    return connection


def _carry(connection: socket.socket) -> None:
    """Both ways until either ends."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(connection.fileno(), select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == 0:
                data = os.read(0, 1 << 16)
                if not data:
                    return
                connection.sendall(data)
            else:
                data = connection.recv(1 << 16)
                if not data:
                    return
                _write(1, data)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])
