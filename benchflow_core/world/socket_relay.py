# Runs in interpreters of a box, down to Python 3.6, not in ours.
# ruff: noqa: PTH101, PTH103, PTH108, PTH116, PTH120
# mypy: ignore-errors
"""One side of a Unix socket that is shown in another box: `there` beside the server, `here` beside its callers."""

import contextlib
import os
import socket
import struct
import sys
import threading

_WHO = struct.Struct("!II")
_as_caller = threading.Lock()


def carry(source: socket.socket, target: socket.socket) -> None:
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


def join(one: socket.socket, other: socket.socket) -> None:
    threading.Thread(target=carry, args=(one, other), daemon=True).start()
    carry(other, one)


def connect_as(uid: int, gid: int, path: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    with _as_caller:
        with contextlib.suppress(OSError):  # a box with one user only
            os.setegid(gid)
            os.seteuid(uid)
        try:
            server.connect(path)
        finally:
            os.seteuid(os.getuid())
            os.setegid(os.getgid())
    return server


def serve_there(client: socket.socket, path: str) -> None:
    held = b""
    while len(held) < _WHO.size:
        held += client.recv(_WHO.size - len(held)) or b"\0" * _WHO.size
    try:
        join(client, connect_as(*_WHO.unpack(held[: _WHO.size]), path))
    except OSError:
        client.close()


def serve_here(client: socket.socket, port: int) -> None:
    _, uid, gid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        server = socket.create_connection(("127.0.0.1", port))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.sendall(_WHO.pack(uid, gid))
        join(client, server)
    except OSError:
        client.close()


def main(side: str, path: str, *more: str) -> None:
    if side == "there":
        listener = socket.socket()
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(("127.0.0.1", 0))
        work, what, info = serve_there, path, os.stat(path)
        ready = [listener.getsockname()[1], info.st_mode & 0o777, info.st_uid, info.st_gid]
    else:
        ready = [int(word) for word in more]
        port, mode, uid, gid = ready
        if os.path.lexists(path):
            os.unlink(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        os.chmod(path, mode)
        with contextlib.suppress(OSError):  # a box with one user only
            os.chown(path, uid, gid)
        work, what = serve_here, port
    listener.listen(64)
    print(*ready, flush=True)
    while True:
        client = listener.accept()[0]
        threading.Thread(target=work, args=(client, what), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
