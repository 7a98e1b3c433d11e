"""What a command prints, kept up to a limit: the head and the tail, never more than that in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable


class Output:
    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0
        self.truncated = False

    async def fill(self, read: Callable[[], Awaitable[bytes]]) -> None:
        while data := await read():
            self.add(data)

    def add(self, data: bytes) -> None:
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest)
            self._in_tail += len(rest)
        while self._in_tail > self._tail_limit:
            over = self._in_tail - self._tail_limit
            oldest = self._tail.popleft()
            if len(oldest) > over:
                self._tail.appendleft(oldest[over:])
            self._in_tail -= min(over, len(oldest))
            self.truncated = True

    def bytes(self) -> bytes:
        return bytes(self._head) + b"".join(self._tail)
