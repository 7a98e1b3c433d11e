"""The first process's own loop: the host is at its standard streams."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from benchflow_boxkit.inside.polling import Polling

_IN, _OUT = 0, 1


class Loop(Polling):
    def __init__(self, call: Callable[[int, bytes], None]) -> None:
        super().__init__(call)
        self.watch(_IN, select.EPOLLIN, self._control)

    def send(self, data: bytes) -> None:
        """Blocks while the other side is slow to read, which it always does in the end."""
        view = memoryview(data)
        while view:
            view = view[os.write(_OUT, view) :]

    def _control(self, _: int) -> None:
        data = os.read(_IN, 1 << 18)
        if not data:
            raise EOFError
        for kind, number, body in self.parser.feed(data):
            self.frame(kind, number, body)
