"""The supervisor's own loop: one connection to the host at a time, which may break and come again."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections import deque
from collections.abc import Callable

from benchflow_boxkit.inside import link
from benchflow_boxkit.inside.polling import Polling

_PIECE = 1 << 16


class Abandoned(Exception):
    """Nobody has come back for too long."""


class Loop(Polling):
    def __init__(self, call: Callable[[int, bytes], None], listener: socket.socket, patience: float) -> None:
        super().__init__(call)
        self.listener, self.patience = listener, patience
        self.kept, self.arriving = link.UnconfirmedData(), link.Incoming()
        self.connection: socket.socket | None = None
        self.greeted = False
        self.alone_since = time.monotonic()
        self._unsent: deque[memoryview] = deque()
        listener.setblocking(False)
        self.watch(listener.fileno(), select.POLLIN, self._accept)

    def serve(self) -> None:
        while True:
            self.handle(1.0 if self.connection is None else 30.0)
            if self.connection is None and time.monotonic() - self.alone_since > self.patience:
                raise Abandoned

    def _accept(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            connection = self.listener.accept()[0]
            self._drop()
            connection.setblocking(False)
            self.connection, self.greeted = connection, False
            self.arriving.renew()
            self.watch(connection.fileno(), select.POLLIN, self._ready)
            self._push(link.greeting({"received": self.arriving.received}))

    def _drop(self) -> None:
        if self.connection is not None:
            self.unwatch(self.connection.fileno())
            self.connection.close()
        self.connection, self.greeted, self.alone_since = None, False, time.monotonic()
        self._unsent.clear()

    def _ready(self, events: int) -> None:
        connection = self.connection
        if connection is None:
            return
        if events & select.POLLOUT:
            self._flush()
        if events & ~select.POLLOUT and self.connection is connection:
            try:
                data = connection.recv(1 << 18)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._drop()
                return
            try:
                for kind, body in self.arriving.feed(data):
                    self._packet(kind, body)
            except (link.ProtocolError, ValueError):
                self._drop()
                return
            if confirmation := self.arriving.due():
                self._push(confirmation)

    def _packet(self, kind: int, body: bytes) -> None:
        if kind == link.PIECE:
            for found in self.parser.feed(body):
                self.frame(*found)
        elif kind == link.CONFIRM:
            self.kept.confirm(link.COUNT.unpack(body)[0])
        else:
            count = int(json.loads(body)["received"])
            self.kept.confirm(count)
            self.greeted = True
            for part in list(self.kept.since(count)):
                self._pieces(part, count)
                count += len(part)

    def send(self, data: bytes) -> None:
        """Kept until it is confirmed; on its way at once when there is a connection."""
        start = self.kept.end
        self.kept.add(data)
        if self.greeted:
            self._pieces(data, start)

    def _pieces(self, data: bytes, start: int) -> None:
        for at in range(0, len(data), _PIECE):
            self._push(link.packet(link.PIECE, data[at : at + _PIECE], start + at))

    def _push(self, data: bytes) -> None:
        if self.connection is not None:
            self._unsent.append(memoryview(data))
            self._flush()

    def _flush(self) -> None:
        connection = self.connection
        if connection is None:
            return
        try:
            while self._unsent:
                sent = connection.send(self._unsent[0])
                if sent < len(self._unsent[0]):
                    self._unsent[0] = self._unsent[0][sent:]
                else:
                    self._unsent.popleft()
            self.watch(connection.fileno(), select.POLLIN, self._ready)
        except BlockingIOError:
            self.watch(connection.fileno(), select.POLLIN | select.POLLOUT, self._ready)
        except OSError:
            self._drop()
